# Commits on a detached HEAD, and has deleted fix-date before merging it.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-03/setup.sh
cd git-03/concert
git branch -D fix-date
git switch -q --detach main
echo "Children 2, adults 5" > tickets.txt
git add tickets.txt
git commit -q -m "Add ticket prices"
