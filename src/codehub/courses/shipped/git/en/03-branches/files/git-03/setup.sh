# Makes the repository for this practice: the folder "concert", beside this script.
#   sh ~/git-03/setup.sh          the first time
#   sh ~/git-03/setup.sh again    begin again; what you have now is kept as concert-old-1, concert-old-2, ...
set -eu
cd "$(dirname "$0")"

if ! command -v git >/dev/null 2>&1; then
  echo "git is not installed here. Please tell your teacher or the administrator."
  exit 1
fi
if [ -e concert ]; then
  if [ "${1:-}" != again ]; then
    echo "The folder concert is already here, nothing was changed. To begin again: sh ~/git-03/setup.sh again"
    exit 1
  fi
  n=1
  while [ -e "concert-old-$n" ]; do n=$((n + 1)); done
  mv concert "concert-old-$n"
  echo "Your concert is now concert-old-$n."
fi

# The commits are Mina's, and your own git settings play no part in making them.
settings=$(git config user.name && git config user.email) || settings=
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Mina GIT_AUTHOR_EMAIL=mina@example.com
export GIT_COMMITTER_NAME=Mina GIT_COMMITTER_EMAIL=mina@example.com

git init -q -b main concert
cd concert
printf 'Spring concert\nDate: 3 May, 19:00\n' > program.txt
git add program.txt
git commit -q -m "Announce the concert"
printf 'School hall, second floor\n' > place.txt
git add place.txt
git commit -q -m "Say where it is"
git switch -q -c fix-date
printf 'Spring concert\nDate: 13 May, 19:00\n' > program.txt
git add program.txt
git commit -q -m "Correct the date"
git switch -q main

echo "Ready: cd ~/git-03/concert, then look with git branch and git log --oneline --graph --all."
if [ -z "$settings" ]; then
  echo "Git does not know your name yet. Before you commit:"
  echo '  git config --global user.name "Your Name"'
  echo '  git config --global user.email "you@example.com"'
fi
