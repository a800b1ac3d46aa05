# bash completion for weirctl
_weirctl() {
  local commands="status ready replicas upstreams config metrics resources explain check top"
  local options="--admin --json --help" command="" word
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $commands " in *" $word "*) command=$word && break ;; esac
  done
  case $prev in
    --method)
      mapfile -t COMPREPLY < <(compgen -W "GET HEAD POST PUT PATCH DELETE OPTIONS" -- "$cur")
      return
      ;;
    --admin | --host | --client | --header | --top | --interval)
      COMPREPLY=()
      return
      ;;
  esac
  case $command in
    "") if [[ $cur == -* ]]; then options+=" --version"; else options=$commands; fi ;;
    resources) options+=" --top" ;;
    explain) options+=" --method --host --client --header" ;;
    top) options+=" --once --interval" ;;
    check)
      if [[ $cur != -* ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
}
complete -F _weirctl weirctl
