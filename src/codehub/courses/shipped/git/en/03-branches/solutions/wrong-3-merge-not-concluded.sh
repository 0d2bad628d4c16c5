# The merge waits for its commit, and the branches are still there.
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
echo "music@school.example" > contact.txt
git add contact.txt
git commit -q -m "Say whom to ask"
git merge --no-commit tickets
