# Merges before main has a commit of its own: a fast-forward, and no fork.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-03/setup.sh
cd git-03/concert
git merge fix-date
git switch -q -c tickets
echo "Children 2, adults 5" > tickets.txt
git add tickets.txt
git commit -q -m "Add ticket prices"
git switch -q main
git merge --no-edit tickets
echo "music@school.example" > contact.txt
git add contact.txt
git commit -q -m "Say whom to ask"
git branch -d fix-date tickets
