# Plays Mina, your colleague: she changes the line of Friday, too, and pushes before you do.
#   sh ~/git-04/mina.sh      when you have committed, and not pushed yet
set -eu
cd "$(dirname "$0")"

if [ ! -e server.git ]; then
  echo "There is no server yet. First: sh ~/git-04/setup.sh"
  exit 1
fi
if git -C server.git rev-parse -q --verify refs/practice/mina >/dev/null; then
  echo "Mina has pushed already. Go on with your own push."
  exit 0
fi
if [ ! -e mine/.git ]; then
  echo "Mina waits: first clone the server into ~/git-04/mine."
  exit 1
fi
case "$(git -C server.git cat-file blob main:lunch.txt)" in
  *bread*)
    echo "You have pushed already, so Mina has nothing to collide with. Begin again: sh ~/git-04/setup.sh again"
    echo "Then clone, change the line, commit, and run this script before you push."
    exit 1
    ;;
esac
case "$(git -C mine cat-file blob HEAD:lunch.txt 2>/dev/null || true)" in
  *"soup with bread"*) ;;
  *)
    echo "Mina waits: first change the line in ~/git-04/mine/lunch.txt to 'Friday: soup with bread', and commit it."
    exit 1
    ;;
esac

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Mina GIT_AUTHOR_EMAIL=mina@example.com
export GIT_COMMITTER_NAME=Mina GIT_COMMITTER_EMAIL=mina@example.com
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q --branch main "$PWD/server.git" "$work/mina"
printf 'Monday: rice\nTuesday: curry\nFriday: pumpkin soup\n' > "$work/mina/lunch.txt"
git -C "$work/mina" add lunch.txt
git -C "$work/mina" commit -q -m "Use the pumpkins"
git -C "$work/mina" push -q origin main
# Remembers for the checks what Mina pushed.
git -C server.git update-ref refs/practice/mina main

echo "Mina has changed the line of Friday to 'pumpkin soup' and pushed it. Now try your own push."
