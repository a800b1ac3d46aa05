# fish completion for weirctl
set -l commands status ready replicas upstreams config metrics resources explain check top
complete -c weirctl -f
complete -c weirctl -l admin -x -d 'The daemon\'s admin address'
complete -c weirctl -l json -d 'Print JSON'
complete -c weirctl -s h -l help -d 'Print help and exit'
complete -c weirctl -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version and exit'
complete -c weirctl -n "not __fish_seen_subcommand_from $commands" -a "$commands"
complete -c weirctl -n '__fish_seen_subcommand_from resources' -l top -x -d 'How many'
complete -c weirctl -n '__fish_seen_subcommand_from explain' -l method -xa 'GET HEAD POST PUT PATCH DELETE OPTIONS' -d 'Its method'
complete -c weirctl -n '__fish_seen_subcommand_from explain' -l host -x -d 'Its Host'
complete -c weirctl -n '__fish_seen_subcommand_from explain' -l client -x -d 'The address it comes from'
complete -c weirctl -n '__fish_seen_subcommand_from explain' -l header -x -d 'A field'
complete -c weirctl -n '__fish_seen_subcommand_from check' -F
complete -c weirctl -n '__fish_seen_subcommand_from top' -l once -d 'Print it once'
complete -c weirctl -n '__fish_seen_subcommand_from top' -l interval -x -d 'Seconds between looks'
