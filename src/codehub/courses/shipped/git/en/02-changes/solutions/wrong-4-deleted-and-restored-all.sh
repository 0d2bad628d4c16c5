# Deletes the file instead of taking it out of the index, throws the phone number away, reverts the wrong commit.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git rm -q -f passwords.txt
git restore .
git revert --no-edit HEAD
