# bash completion for weird
_weird() {
  local options="--config --listen --admin --upstream --limit --etcd --replica --workers --log-level --log-format"
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  options+=" --check --help --version"
  case $prev in
    --config)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
    --log-level) options="trace debug info warn error off" ;;
    --log-format) options="text json" ;;
    --listen | --admin | --upstream | --limit | --etcd | --replica | --workers)
      COMPREPLY=()
      return
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
}
complete -F _weird weird
