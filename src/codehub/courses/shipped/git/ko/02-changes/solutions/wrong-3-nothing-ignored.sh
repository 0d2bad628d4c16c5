# passwords.txt가 아직 인덱스에 있어 revert가 거부되었습니다. 이때 .gitignore는 소용이 없습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git restore hours.txt
printf 'passwords.txt\n*.log\n' > .gitignore
git revert --no-edit HEAD~1 || true
