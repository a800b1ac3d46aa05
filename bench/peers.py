"""What is compared: weird and Debian's nginx and haproxy, each set up for the same work.

All keep connections on both sides, add the same forwarding fields and have one worker; everything else is their
default, but where that would make the work unequal. "Limited" is counted by path against a limit that is never
reached: weird by its default rule, nginx by limit_req, haproxy by a stick table; weird alone tells the client what
is left.
"""

NEVER = 1_000_000_000  # a limit that is not reached

# nginx's folders are relative to -p, as the compiled-in ones belong to root. Bodies are passed on as they come, as
# weird and haproxy do, through buffers of the same size as weird's; haproxy's are its default, a fourth of that.
NGINX_FLAGS = ("-p.", "-e", "stderr", "-c")
NGINX = """
daemon off; @nginx_main@ pid @name@.pid; error_log stderr error; events { worker_connections 8192; }
http { access_log off; keepalive_requests 1000000000; client_max_body_size 0;
  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  %s
}
"""
NGINX_PROXY = NGINX % """
  @nginx_zone@
  upstream main { server 127.0.0.1:@upstream@; keepalive 1024; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:@port@ backlog=4096; location / {
    proxy_pass http://main; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_max_temp_file_size 0;
    proxy_request_buffering off; client_body_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k;
    proxy_set_header Host $http_host; proxy_set_header Via "1.1 nginx";
    proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $http_host; @nginx_limit@
  } }
"""
# The body stands in the configuration, so that no file is read per request; as nginx takes words of at most 4 KiB,
# variables stand for 1 KiB and 64 KiB of it.
UPSTREAM = NGINX % """
  server { listen @upstream@ backlog=4096; location / { set $k "@kib@"; set $m "@kib64@"; return 200 "@body@"; } }
  @reader@"""
# `return` answers without looking at the request's body: where there is one, this server reads it first, whole.
READER = """
  upstream inner { server @upstream@; keepalive 64; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:@outer@ backlog=4096; location / {
    client_body_buffer_size 2m; proxy_pass http://inner; proxy_pass_request_body off; proxy_http_version 1.1;
    proxy_set_header Content-Length ""; proxy_set_header Connection ""; proxy_max_temp_file_size 0;
    proxy_buffers 32 64k; proxy_busy_buffers_size 128k; } }"""

HAPROXY = """
global
  nbthread @workers@
  maxconn 8192
listen main
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  http-reuse always
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header Via "1.1 haproxy"@haproxy_limit@
  bind 127.0.0.1:@port@ backlog 4096
  server upstream 127.0.0.1:@upstream@
"""
HAPROXY_LIMIT = """
  stick-table type string len 128 size 200k expire 1m store http_req_rate(1m)
  http-request track-sc0 path
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 }"""

WEIRD = """
listen: 127.0.0.1:@port@
admin: 127.0.0.1:@admin@
workers: @workers@
replica: @name@
limits: {connections: 100000}
max_waiting: 100000
max_resources: @max_resources@
@coordination@
rules:
  - {name: queue, match: {path: /queue}, limit: 100, window: 24h}
default: {@weird_limit@}
upstreams: {main: {servers: ["http://127.0.0.1:@upstream@"]@mechanisms@}}
"""

RETRIES = """, service_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s,
    maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}}],
    retryThrottling: {maxTokens: 10, tokenRatio: 0.1}}"""
# One client is one tenant: the rate starts where it does not bind.
THROTTLE = ", throttle: {kind: sfq, initial_rate: 1000000}"

DEFAULTS = {"limited": True, "workers": 1, "max_resources": 100_000, "window": "1h", "retries": False,
            "throttle": False, "etcd": None}


def upstream_text(port, size, inner=None):
    """An upstream on the port that answers so many bytes; with another port for its own use it reads bodies first."""
    return UPSTREAM, {"reader": READER if inner else "", "upstream": f"127.0.0.1:{inner or port}", "outer": port,
                      "kib": "x" * 1024, "kib64": "${k}" * 64,
                      "body": "${m}" * (size // 65536) + "${k}" * (size % 65536 // 1024) + "x" * (size % 1024)}


def argv(kind, tools, processes, name=None, alone=False, **wanted):
    """The command line that starts a peer; `wanted` are its ports and what differs from DEFAULTS.

    alone: in one process that does not fork, for tools that look into it.
    """
    setup = {**DEFAULTS, "name": name or kind, "admin": 0, **wanted}
    limited = setup["limited"]
    workers = f"worker_processes {setup['workers']};"
    values = {
        **setup,
        "nginx_main": "master_process off;" if alone else workers,
        "nginx_zone": "limit_req_zone $uri zone=paths:64m rate=1000000r/s;" if limited else "",
        "nginx_limit": "limit_req zone=paths burst=1000000 nodelay;" if limited else "",
        "haproxy_limit": HAPROXY_LIMIT if limited else "",
        "weird_limit": f"limit: {NEVER}, window: {setup['window']}" if limited else "unlimited: true",
        "mechanisms": (RETRIES if setup["retries"] else "") + (THROTTLE if setup["throttle"] else ""),
        "coordination": "" if not setup["etcd"] else
                        f"coordination: {{kind: etcd, etcd: {{endpoints: [\"http://127.0.0.1:{setup['etcd']}\"]}}}}",
    }
    text = {"weird": WEIRD, "nginx": NGINX_PROXY, "haproxy": HAPROXY}[kind]
    file = processes.write(f"{setup['name']}.conf", text, **values)
    flags = {"weird": ["--config"], "nginx": NGINX_FLAGS, "haproxy": ["-db", "-f"]}[kind]
    return [tools[kind], *flags, file]
