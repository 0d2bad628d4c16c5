# 인덱스에서 빼는 대신 파일을 지웠고, 전화번호까지 버렸고, 엉뚱한 커밋을 되돌렸습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git rm -q -f passwords.txt
git restore .
git revert --no-edit HEAD
