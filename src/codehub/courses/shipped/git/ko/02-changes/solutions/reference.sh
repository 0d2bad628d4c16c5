set -e
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git restore --staged passwords.txt
git restore hours.txt
printf 'passwords.txt\n*.log\n' > .gitignore
git add .gitignore
git commit -q -m "비밀번호와 로그 제외"
git add address.txt
git commit -q -m "전화번호 추가"
git revert --no-edit "$(git rev-list --grep='^모든 가격을 반값으로$' HEAD)"
