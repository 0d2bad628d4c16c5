# 잘못된 커밋 이전으로 돌아가면서 주소와 전화번호까지 잃었습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git reset -q --hard HEAD~2
