# "git add ." and commit: the accident and the passwords are in the history.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git add .
git commit -q -m "Tidy up"
