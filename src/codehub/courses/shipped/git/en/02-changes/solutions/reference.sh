set -e
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git restore --staged passwords.txt
git restore hours.txt
printf 'passwords.txt\n*.log\n' > .gitignore
git add .gitignore
git commit -q -m "Leave passwords and logs out"
git add address.txt
git commit -q -m "Add the phone number"
git revert --no-edit "$(git rev-list --grep='^Halve all prices$' HEAD)"
