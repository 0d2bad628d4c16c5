# Makes the repository for this practice: the folder "shop", beside this script.
#   sh ~/git-02/setup.sh          the first time
#   sh ~/git-02/setup.sh again    begin again; what you have now is kept as shop-old-1, shop-old-2, ...
set -eu
cd "$(dirname "$0")"

if ! command -v git >/dev/null 2>&1; then
  echo "git is not installed here. Please tell your teacher or the administrator."
  exit 1
fi
if [ -e shop ]; then
  if [ "${1:-}" != again ]; then
    echo "The folder shop is already here, nothing was changed. To begin again: sh ~/git-02/setup.sh again"
    exit 1
  fi
  n=1
  while [ -e "shop-old-$n" ]; do n=$((n + 1)); done
  mv shop "shop-old-$n"
  echo "Your shop is now shop-old-$n."
fi

# The commits are Hana's, and your own git settings play no part in making them.
settings=$(git config user.name && git config user.email) || settings=
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Hana GIT_AUTHOR_EMAIL=hana@example.com
export GIT_COMMITTER_NAME=Hana GIT_COMMITTER_EMAIL=hana@example.com

git init -q -b main shop
cd shop
printf 'green tea   4.00\nblack tea   3.60\nmint tea    4.20\n' > prices.txt
git add prices.txt
git commit -q -m "Add the price list"
printf 'Monday to Friday  9 to 18\nSaturday          10 to 14\n' > hours.txt
git add hours.txt
git commit -q -m "Add the opening hours"
printf 'green tea   2.00\nblack tea   1.80\nmint tea    2.10\n' > prices.txt
git add prices.txt
git commit -q -m "Halve all prices"
printf 'Tea House\n12 Harbour Street\n' > address.txt
git add address.txt
git commit -q -m "Add the address"

# What Hana left on her desk.
printf 'Phone: 555-0134\n' >> address.txt
printf 'jjjjjjjjjjjjjjjjkl;;;;\n' > hours.txt
printf 'till: 4711\nalarm: 0815\n' > passwords.txt
git add passwords.txt
printf '09:00 till opened\n' > till.log

echo "Ready: cd ~/git-02/shop, then look with git status."
if [ -z "$settings" ]; then
  echo "Git does not know your name yet. Before you commit:"
  echo '  git config --global user.name "Your Name"'
  echo '  git config --global user.email "you@example.com"'
fi
