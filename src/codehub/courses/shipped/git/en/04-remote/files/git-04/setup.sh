# Makes the server for this practice: the bare repository "server.git", beside this script.
#   sh ~/git-04/setup.sh          the first time
#   sh ~/git-04/setup.sh again    begin again; what you have now is kept in old-1, old-2, ...
set -eu
cd "$(dirname "$0")"

if ! command -v git >/dev/null 2>&1; then
  echo "git is not installed here. Please tell your teacher or the administrator."
  exit 1
fi
if [ -e server.git ]; then
  if [ "${1:-}" != again ]; then
    echo "The server is already here, nothing was changed. To begin again: sh ~/git-04/setup.sh again"
    exit 1
  fi
  n=1
  while [ -e "old-$n" ]; do n=$((n + 1)); done
  mkdir "old-$n"
  mv server.git "old-$n/"
  if [ -e mine ]; then mv mine "old-$n/"; fi
  echo "What you had is now in old-$n."
fi

# The first commit is Mina's, and your own git settings play no part in making it.
settings=$(git config user.name && git config user.email) || settings=
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Mina GIT_AUTHOR_EMAIL=mina@example.com
export GIT_COMMITTER_NAME=Mina GIT_COMMITTER_EMAIL=mina@example.com

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q --bare -b main server.git
git init -q -b main "$work"
printf 'Monday: rice\nTuesday: curry\nFriday: soup\n' > "$work/lunch.txt"
git -C "$work" add lunch.txt
git -C "$work" commit -q -m "Plan the lunches"
git -C "$work" push -q "$PWD/server.git" main

echo "Ready: the server is ~/git-04/server.git. Next: cd ~/git-04, and clone it into the folder mine."
if [ -z "$settings" ]; then
  echo "Git does not know your name yet. Before you commit:"
  echo '  git config --global user.name "Your Name"'
  echo '  git config --global user.email "you@example.com"'
fi
