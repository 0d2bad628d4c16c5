# The revert is refused, because passwords.txt is still in the index; .gitignore does not help against that.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git restore hours.txt
printf 'passwords.txt\n*.log\n' > .gitignore
git revert --no-edit HEAD~1 || true
