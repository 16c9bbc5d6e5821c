"""Command lines that coding agents run, by the word each gets under `developer`. Lists to add to, never to trim.

The word is decided by what a line can do: looking, building and testing run; what changes files of a person, throws
work away, brings packages, talks to other machines or runs code nobody has seen asks. `* ` marks the most usual ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.kernel.policy import Word

_MARK = "* "

ALLOWED = r"""
ls -la src/*.py tests/*.py
ls src/ tests/ docs/
ls -lah --time-style=long-iso
ls -t | head -5
ls -d */
wc -l src/*.ts
wc -l src/*.py | tail -1
cat package.json | jq '.scripts'
cat pyproject.toml | head -50
cat src/main.py | grep -n "import"
head -c 2000 README.md
head -n 100 src/main.py | tail -n 20
tail -n +10 src/main.py | head -30
sed -n '1,80p' src/main.py
sed -n '100,140p;200,220p' src/main.py
nl -ba src/main.py | sed -n '10,40p'
awk -F: '{print $1}' names.txt | sort | uniq -c | sort -rn | head
awk '/^def /{print FILENAME": "$0}' src/main.py
grep -rn "TODO\|FIXME" --include="*.py" src/ | head -20
grep -rnE "class \w+\(" src --include=*.py
grep -rl "useState" src --include="*.tsx" --include="*.ts"
grep -n "def test_" tests/test_main.py | wc -l
grep -v '^#' requirements.txt | grep -v '^$'
rg -n "foo\(" --type py -g '!tests/**'
rg --files | rg test | head
rg -l "import React" --glob '*.tsx' | wc -l
rg -U "async def.*\n.*await" src
rg --no-heading --line-number --color never "handler" src
find . -type f -name "*.py" -not -path "*/node_modules/*" | head -50
find . -type f -name '*.ts' | xargs wc -l
find . -name "*.py" -print0 | xargs -0 grep -l "import os"
find src -name "*.py" -exec grep -l "main" {} +
find src -name "*.py" -exec wc -l {} \;
find . -path ./node_modules -prune -o -name '*.js' -print
find . -maxdepth 3 -name "*.json" -size -100k -mtime -7
tree -I 'node_modules|.git|__pycache__' -L 3
du -sh * | sort -h
du -sh .git node_modules
df -h .
pwd && ls -la
which python3 node npm
command -v uv
echo "hello"
echo "---" && git log --oneline -3
printf '%s\n' one two
env | sort | head
stat -c '%s %n' README.md
sha256sum package.json
xxd README.md | head -5
hexdump -C README.md | head
basename src/main.py .py
realpath src/main.py
readlink -f src/main.py
sleep 1 && git status
[ -d src ] && echo exists || echo missing
test -d node_modules && echo installed
diff -u a.txt b.txt | head -40
diff -rq src tests
cut -d: -f1 names.txt | sort -u
tr 'a-z' 'A-Z' < README.md
paste -sd, names.txt
column -t -s, data.csv
jq -r '.dependencies | to_entries[] | "\(.key)@\(.value)"' package.json
jq '.scripts.test' package.json
git status --porcelain=v1
git diff --stat HEAD~1
git diff HEAD -- src/main.py
git diff main...HEAD --name-only
git diff --name-status HEAD~3 HEAD
git diff --no-color --unified=5 -- src
git log -p -1 -- src/main.py
git log --graph --oneline --all --decorate -15
git log --since="2 weeks ago" --author=alice --pretty=format:"%h %an %s"
git log -S "needle" --oneline -- src
git show --stat HEAD~1
git show HEAD:src/main.py | head -20
git branch -a -vv
git ls-files | head -20
git ls-files '*.py' | xargs wc -l
git grep -n "needle" -- '*.py'
git submodule status
git check-ignore -v build
git --no-pager log -5
git --no-pager diff HEAD~1
git add src/main.py tests/test_main.py
git commit -am "Add tests"
git commit -m "Subject" -m "Body text"
git add . && git status --short
git switch -c feature/x
git checkout -b feature/y
python3 -m pytest tests/test_main.py -x -vv
pytest tests/test_main.py::test_main -v
pytest -k "parser and not slow" --tb=short
pytest -x --lf -q 2>&1 | tail -30
pytest --maxfail=1 -n 4 tests
python -m unittest discover -s tests
mypy --strict src
ruff check src --output-format=concise
black --check src
flake8 src
pyright src
python -m compileall -q src
python3 -V && pip --version
pip freeze | grep -i django
python -m pip list --outdated --format=json
uv --version
uv pip list
uv run pytest -q
uv run ruff check .
uv tree
poetry run pytest
npx tsc --noEmit -p tsconfig.json
npx tsc --noEmit 2>&1 | head -50
npx eslint src --ext .ts,.tsx
npx prettier --check "src/**/*.ts"
npx vitest run
npx jest src/app.test.ts
yarn build
pnpm -r build
go test ./... -run TestParse -v -count=1
go test -race -cover ./pkg/...
golangci-lint run
cargo test parser::tests -- --nocapture
cargo check --all-targets
cargo clippy --all-targets --all-features
cargo tree -d
cargo metadata --format-version 1 --no-deps
make -j4
make -n install
make clean && make
cmake --build build -j 4
gcc -Wall -Wextra -O2 -o build/main src/main.c
gcc -c src/main.c -o build/main.o
g++ -std=c++17 -Wall src/main.cpp -o build/app
clang -fsyntax-only src/main.c
cd tests && pytest -q
cd src && python -m pytest ../tests
mkdir -p src/components
mkdir -p build && cd build && cmake ..
mkdir -p a/{b,c}
ls src/{main,app}.py
timeout 60 pytest -q
timeout 30s npm test
time make
pytest > /tmp/out.txt 2>&1
ls -la 2>/dev/null || true
cat does-not-exist.txt 2>/dev/null; echo done
CI=1 npm test
PYTHONPATH=src pytest -q
RUST_BACKTRACE=1 cargo test
NODE_ENV=test npx jest
FORCE_COLOR=0 npx vitest run
bash -c 'ls -la && git status'
tar -tzf archive.tar.gz
tar -tf archive.tar | head
unzip -l archive.zip
tail -100 build.log | grep -i error
cat *.md | wc -w
grep -c "test" tests/*.py
npm run dev
patch -p1 --dry-run < fix.patch
git apply --check fix.patch
python manage.py migrate
python manage.py test
wc -l src/*.py
ls *.py
find . -name "*.py" -exec grep -l needle {} +
* npx tsc --noEmit
npx eslint .
npx jest
env ls
time ls
* ls
* ls -la
ls -1 src
ls --color=never -R tests
* cat README.md
cat -n src/main.py
* head -20 README.md
head -n 5 src/main.py
* tail -n 50 build.log
tail -c 100 build.log
wc -l src/main.py tests/test_main.py
* grep -rn "def main" src
grep -riE "todo|fixme" .
grep -l needle -r src --include='*.py'
grep -c . README.md
grep -e one -e two README.md
grep -A3 -B2 pattern src/main.py
grep 'a;b|c && $(d) > e' README.md
* rg TODO
* rg -n "class .*Error" src
rg --files -g "*.py"
rg -i -C 3 needle src tests
rg -tpy -l import
* find . -name "*.py"
find src -type f -newer README.md
find . -name "*.pyc" -not -path "./.venv/*"
find . \( -name '*.c' -o -name '*.h' \) -print
find . -maxdepth 2 -type d -empty
* tree -L 2
stat README.md
file README.md
du -sh src
* diff -u a.txt b.txt
* sort -u names.txt
sort -t, -k2 -n data.csv
uniq -c names.txt
cut -d, -f1,3 data.csv
* jq .version package.json
jq -r ".scripts | keys[]" package.json
* sed -n 10,20p src/main.py
sed -n "/start/,/end/p" src/main.py
sed "s/old/new/g" README.md
sed -E "s/(a|b)+/x/" README.md
* echo hello world
* pwd
date +%Y-%m-%d
* which python
sha256sum README.md
realpath src
* git status
git status --short --branch
* git log
* git log --oneline -10
git log -n 3 --stat
git log --graph --oneline --all
git log --since="2 weeks ago" --author=ada
git log -p -- src/main.py
git log main..HEAD
git log --follow README.md
git log --format="%h %s"
* git diff
* git diff HEAD
* git diff --cached
git diff --stat main...feature
git diff HEAD~3 HEAD -- src
git diff --name-only origin/main
* git show
* git show HEAD
git show HEAD~2:src/main.py
git show --stat abc1234
* git blame src/main.py
git blame -L 10,20 src/main.py
* git branch
* git branch -a
* git branch --show-current
git branch feature/new
* git rev-parse HEAD
* git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
* git ls-files
git ls-files -m --others --exclude-standard
* git remote -v
git remote get-url origin
git describe --tags --always
git merge-base main HEAD
* git grep -n needle
git reflog
git cat-file -p HEAD
git config --get user.name
git config --list
git shortlog -sn
git -C src status
git --no-pager diff
* git add .
* git add src/main.py tests
* git add -A
* git commit -m "Fix the parser"
git commit -am "Fix the parser"
* python --version
python3 -V
* python script.py
python script.py --flag value -x
* python -m pytest
* python -m pytest tests/test_main.py -x -q
python -m unittest -v
python -m mypy src
python -m ruff check .
* pytest
* pytest -x
pytest -q tests/test_main.py::test_one
pytest -k "one and not two" --maxfail=1
pytest 'tests/test_main.py::TestIt::test_it[case-1]'
pytest --cov=src --tb=short -n 4
pytest -vv --lf
ruff check
ruff check src tests --select E,F
ruff check --diff .
* mypy src
mypy --strict src/main.py
* pip list
pip show requests
pip freeze
* npm test
npm t
* npm run build
npm ls --depth=0
npm --version
* node --version
node script.js --port 3000
node --test
* make
* make test
make -j4 build
make -n all
cargo build --release
cargo test -- --nocapture
cargo clippy --all-targets
* go build ./...
go test -v ./pkg/...
* go vet ./...
* mkdir -p build/out
* touch src/new.py
* git checkout -b feature
* git switch -c feature
tr a-z A-Z
* ls -l
ls -lah
ls src tests
ls -la src/
ls -lt
ls -R src
ls -a
* cat package.json
cat pyproject.toml
* cat src/main.py tests/test_main.py
cat -A README.md
nl -b a src/main.py
* head -50 src/main.py
head -c 200 README.md
tail -20 build.log
tail -n +10 README.md
* wc -l README.md
wc -c README.md
* grep -n "import" src/main.py
* grep -rn TODO src
* grep -rn "foo" --include="*.ts" src
grep -rnE "class |def " src
grep -v "^#" a.txt
grep -rl needle .
grep -i error build.log
grep -w main src/main.py
grep -o "[0-9]*" a.txt
grep -q main src/main.py
rg needle
* rg -l needle src
rg -n needle src/main.py
* rg --files
rg --files src
rg -c TODO
rg -w main
rg -F "a.b(" src
rg -e one -e two
rg --hidden -g "!.git" needle
rg --type py "def "
rg -A 5 -B 5 needle
rg --json needle src
* find . -type f
* find . -type f -name "*.ts" -not -path "*/node_modules/*"
find src -name "*.py" -mtime -1
find . -maxdepth 1
find . -type d -name "__pycache__"
find . -name package.json
find . -size +1M
find . -path ./node_modules -prune -o -name "*.js" -print
find tests -name "test_*.py" -print0
fd main
fd -e py
fd -t f main src
tree
tree -a -I node_modules
tree -d -L 3 src
stat -c %s README.md
file src/main.py
* du -sh .
du -h -d 1
df -h
diff a.txt b.txt
diff -r src tests
cmp a.txt b.txt
sort a.txt
sort -rn a.txt
sort -k2 -t: a.txt
uniq a.txt
cut -f1 -d: a.txt
cut -c1-80 README.md
comm -12 a.txt b.txt
paste a.txt b.txt
column -t a.txt
fold -w 80 README.md
rev a.txt
tac a.txt
expand -t 4 src/main.py
base64 a.txt
join a.txt b.txt
strings -n 8 a.txt
hexdump -C a.txt
sha512sum README.md
sha1sum README.md
md5sum README.md
xxd -l 64 README.md
od -c a.txt
seq 1 10
sleep 1
sleep 0.5
true
false
test -f README.md
test -d src
test -f README.md && echo yes
test -d node_modules || echo missing
jq . package.json
jq -r .name package.json
jq ".dependencies | keys" package.json
jq -s . a.txt
* sed -n "1,50p" src/main.py
sed -n 100,200p src/main.py
sed -n "5p" a.txt
sed -n "1p;5,9p" a.txt
sed '/^$/d' a.txt
sed "s|/usr|/opt|g" a.txt
sed -e "s/a/b/" -e "s/c/d/" a.txt
sed "1,5d" a.txt
sed 10q README.md
sed -n '$=' a.txt
awk "{print}" a.txt
* awk '{print $1}' a.txt
awk -F: '{print $1}' a.txt
awk -F, '{print $1, $3}' data.csv
awk '/needle/' a.txt
awk '/start/ {print $2}' a.txt
awk 'NR==5' a.txt
awk 'NR>=10 && NR<=20' src/main.py
awk '{s+=$1} END {print s}' a.txt
awk '{print $NF}' a.txt
tar -tf a.tar
tar -tzf a.tgz
tar tzf a.tgz
tar -tvf a.tar
unzip -l a.zip
zipinfo a.zip
gzip -dc a.gz
gunzip -c a.gz
zcat a.gz
gzip -l a.gz
echo "a b"
printf '%s\n' hello
date
date -u
date +%s
pwd -P
whoami
id
uname -a
hostname
nproc
uptime
free -h
which node
which -a python3
basename src/main.py
dirname src/main.py
realpath README.md
readlink -f link-in
ps aux
* git status -s
git status --porcelain
git status -sb
* git --no-pager log --oneline -5
git --no-pager diff --stat
git log -1
git log -5
git log --oneline
git log --oneline -20
git log --oneline main..HEAD
git log --stat -3
* git log -p -1
git log --author="Ada" --oneline
git log --grep=fix --oneline
git log -S needle --oneline
git log --name-only -3
git log --pretty=format:"%h %an %s"
* git log --oneline -- src/main.py
git log -1 --format=%H
* git diff src/main.py
git diff --staged
* git diff --stat
* git diff --name-only
git diff --name-status HEAD~1
* git diff HEAD~1
git diff main
* git diff main...HEAD
git diff -- src tests
git diff --cached --stat
git diff --word-diff
git diff --check
git diff -U10 src/main.py
git diff -w
* git show HEAD --stat
git show HEAD:README.md
git show --name-only HEAD
git show abc1234
git blame -w README.md
git branch -v
git branch -vv
git branch -r
git branch --list
git branch --merged main
git branch --contains HEAD
git branch new-feature
git rev-parse --short HEAD
git rev-parse --git-dir
git rev-parse --is-inside-work-tree
git rev-list --count HEAD
git ls-files src
git ls-files --others --exclude-standard
git ls-tree -r HEAD --name-only
git remote
git remote show -n origin
git describe --tags
git grep needle
git grep -n "def main" -- src
git config --get remote.origin.url
* git stash list
git stash show
git stash show -p
* git tag
git tag -l
git tag -l "v*"
git tag --sort=-version:refname
git tag --list
git tag -n
* git worktree list
git apply --check a.patch
git apply --stat a.patch
git clean -n
git clean -nd
git symbolic-ref --short HEAD
git check-ignore -v build.log
git shortlog -sn --all
git cat-file -t HEAD
git for-each-ref --sort=-committerdate refs/heads
git show-ref --heads
git count-objects -v
git name-rev HEAD
git version
git add README.md
git add -u
git add -A .
git add src tests
git commit -m "Add a test"
git commit -a -m "Add a test"
git commit -m "Subject" -m "Body"
git commit --allow-empty -m "Empty"
git commit -s -m "Signed off"
git checkout -b feature/new
git checkout -b feature main
* git switch main
git switch -c feature/new
git switch -
git switch --detach HEAD
python3 --version
* python3 script.py
python3 script.py --verbose
python src/main.py
* python -m pytest -q
python -m pytest -x tests
python -m pytest tests/test_main.py::test_one
python3 -m pytest -q tests
python3 -m pytest -k main
python -m unittest
python -m unittest discover
python -m unittest tests.test_main
* python -m json.tool package.json
python3 -m json.tool package.json
python -m py_compile src/main.py
python -m compileall src
* python -m venv .venv
python3 -m venv venv
python -m pip list
python -m pip show requests
python -m pip --version
python -m mypy --strict src
python -m ruff format --check .
python -m black --check .
python -m site
* pytest -q
pytest -v
pytest tests
pytest -xvs tests/test_main.py
* pytest tests/test_main.py
* pytest tests/test_main.py -v
pytest tests/test_main.py::test_one -v
pytest -x --tb=short
pytest -q --tb=line
pytest --lf
* pytest -k main
pytest -m "not slow"
pytest --collect-only -q
pytest -n auto
pytest --durations=10
pytest --cov=src --cov-report=term-missing
pytest -s
pytest --version
pytest --maxfail=3
pytest -p no:cacheprovider
pytest --ignore=tests/slow
pytest -W error
* ruff check .
ruff check src
ruff check src/main.py
ruff check --output-format=concise
ruff check --select I .
ruff format --check
* ruff format --check .
ruff format --diff src
ruff --version
ruff rule E501
* black --check .
black --check --diff src
isort --check .
isort --check-only --diff src
mypy .
mypy src/main.py
mypy --ignore-missing-imports src
mypy --version
coverage report
coverage report -m
pip --version
pip list --outdated
pip check
pip3 list
pip3 show requests
poetry show
poetry check
* npm run test
* npm run lint
npm run typecheck
npm run
npm run test:unit
npm ls
npm list --depth=0
npm -v
npm pkg get version
npm test --silent
npm --prefix src test
pnpm test
pnpm run build
pnpm --version
yarn test
yarn run build
yarn --version
node -v
* node script.js
node src/index.js
node --check script.js
node --test tests
* tsc --noEmit
tsc -p .
tsc --version
* eslint .
eslint src --ext .ts,.tsx
eslint src --max-warnings 0
prettier --check .
prettier --check src
jest
jest --ci
jest --watchAll=false
jest src/app.test.js
vitest run
vitest run src/app.test.ts
* make build
make lint
make check
make all
make clean
make -j8
make -C src
make --version
* cargo build
* cargo check
* cargo test
cargo test --release
cargo test parser
cargo test -p core
cargo test -- --test-threads=1
cargo test parser -- --nocapture
cargo run
cargo run --release
cargo run --bin app
cargo run -- --help
cargo clippy
* cargo clippy -- -D warnings
cargo clippy --all-targets --all-features -- -D warnings
cargo fmt --check
cargo fmt -- --check
cargo fmt --all -- --check
cargo doc --no-deps
cargo tree
cargo metadata --no-deps --format-version 1
cargo bench
cargo --version
rustc --version
rustc --explain E0382
go build
go build ./cmd/app
go build -o bin/app ./cmd/app
* go test ./...
go test ./... -run TestOne
go test -race ./...
go test -count=1 ./...
go test -cover ./...
go test -bench=. ./...
go run .
go run main.go
go run ./cmd/app
go vet ./pkg
go list ./...
go list -m all
go version
go env
go env GOPATH
go mod graph
go mod verify
go doc fmt.Println
gofmt -l .
gofmt -d src
* gcc -o main main.c
gcc -Wall -Wextra -O2 -o main main.c
gcc -c main.c
gcc -g -o main main.c util.c -lm
gcc --version
g++ -std=c++17 -o main main.cpp
g++ -std=c++20 -Wall -Iinclude -c src/a.cpp
clang -o main main.c
clang -fsyntax-only main.c
clang++ -std=c++17 -O3 main.cpp -o main
cmake -S . -B build
cmake -B build -DCMAKE_BUILD_TYPE=Release
cmake -S . -B build -G Ninja
* cmake --build build
cmake --build build -j4
cmake --build build --target test
ninja -C build
ctest --test-dir build --output-on-failure
mkdir build
mkdir -p src/pkg tests/pkg
touch src/__init__.py
cd src && ls
cd src && ls -la
cd src && pytest -q
* cd src && pytest -q 2>&1 | tail -5
cd tests && python -m pytest -x
pytest 2>&1 | tail -20
* pytest -q 2>&1 | tail -30
pytest -q 2>&1 | head -50
pytest tests -x -q 2>&1 | tail -40
pytest -q | grep FAILED
npm test 2>&1 | tail -30
* npm run build 2>&1 | tail -20
npm run build 2>&1 | head -40
make 2>&1 | tail -20
make test 2>&1 | grep -i error
cargo test 2>&1 | tail -20
cargo build 2>&1 | head -40
cargo check 2>&1 | grep error
go test ./... 2>&1 | tail -20
go build ./... && go vet ./...
mypy src 2>&1 | tail -5
ruff check . && mypy src
ruff check . && ruff format --check .
ruff check src tests && pytest -q
tsc --noEmit && eslint src
git status && git diff
git status --short | head -20
* git add -A && git commit -m "Fix the parser"
git add . && git commit -m "Fix the parser"
git log --oneline | head -5
git log --oneline -20 | cat
git diff | head -100
git diff --stat | tail -1
git diff HEAD | grep "^+"
git branch | grep feature
git ls-files | wc -l
git ls-files | grep test
cat README.md | head -20
* cat package.json | jq .scripts
* cat a.txt | sort | uniq -c | sort -rn
cat data.csv | cut -d, -f2 | sort -u
cat src/main.py | grep -n def
cat a.txt | tr a-z A-Z
cat a.txt | awk '{print $2}'
cat a.txt | sed "s/a/b/g"
cat a.txt | xxd -p
cat a.txt | base64
cat a.txt | wc -l
echo hello | tr -d l
ls -la | head -20
ls | wc -l
ls src | grep py
ls -t | head -1
* find . -name "*.py" | head -20
find . -name "*.py" | wc -l
find . -type f -name "*.ts" | grep -v node_modules | head -30
find src -name "*.py" | sort
* grep -rn TODO src | head -20
grep -rn needle . | wc -l
grep -rl needle src | sort
grep -c def src/main.py || true
* rg needle | head -10
rg -l needle | sort -u
rg needle src -n | head -30
wc -l src/main.py && head -5 src/main.py
head -100 src/main.py | tail -20
ps aux | grep node
pip list | grep requests
pip freeze | head
du -sh src | sort -h
python script.py 2>&1 | head -20
python --version && pip --version
node --version && npm --version
python script.py 2>/dev/null
ls node_modules 2>/dev/null | head
cat missing.txt 2>/dev/null || echo none
which cargo go node python3
pwd && ls
pwd; ls -la
echo "---"; git status
bash -c "ls -la"
bash -lc "pytest -q"
sh -c "git status"
diff a.txt b.txt || true
sort < a.txt
wc -l < README.md
pytest -q > /dev/null
cargo fmt --check && cargo clippy -- -D warnings
cmake .
mkdir -p build && cmake -B build
git reflog -5
git reflog show main
git commit
echo "=== status ===" && git status --short
cat a.txt | jq .
"""

ASKED = r"""
type ruff
git mv src/main.py src/app.py
git tag v1.2.3
tox -l
npm run test -- --watch=false
npm view react version
cp src/main.py src/main_copy.py
cp -r src build/src
mv src/main.py src/app.py
cp src/*.py build/
pytest -q > out.txt 2>&1; tail -5 out.txt
npm test 2>&1 | tee test.log | tail -20
GOFLAGS=-mod=mod go build ./...
tar -czf build/src.tar.gz src
zip -r build/src.zip src
rm -rf node_modules
rm -rf build dist *.egg-info
rm build/*.o
rm src/old.py
npm install --save-dev typescript
npm i lodash
pnpm add zod
yarn add react
python -m pip install --upgrade pip
uv add httpx
uv pip install -r requirements.txt
cargo add serde --features derive
go get github.com/stretchr/testify
git push -u origin feature/x
git fetch --all --prune
git reset --hard HEAD
git merge feature/x
git revert HEAD --no-edit
git branch -d feature/x
git branch -D feature/x
git clone https://github.com/owner/repo.git
git submodule update --init --recursive
git config user.email a@example.com
git remote add origin git@github.com:owner/repo.git
git push origin git@github.com:owner/repo.git
python3 -c "import sys; print(sys.version)"
python -c 'import json; print(json.load(open("package.json"))["name"])'
node -e "console.log(require('./package.json').version)"
bundle exec rspec
docker ps -a
docker logs --tail 50 web
docker compose ps
docker build -t app .
docker exec -it web bash
gh pr view 12 --json title,body
gh issue list --limit 5
gh run list
gh api repos/owner/repo/pulls
curl -s https://example.com/api | jq .
curl -I http://localhost:3000
curl -s http://localhost:8000/health
wget -q https://example.com/file.tar.gz
npm run dev &
pkill -f "npm run dev"
chmod +x scripts/run.sh
bash scripts/run.sh
patch -p1 < fix.patch
git apply fix.patch
sed -i 's/foo/bar/g' src/main.py
sed -i -e 's/a/b/' src/*.py
perl -pi -e 's/foo/bar/' src/main.py
find . -name __pycache__ -type d -exec rm -rf {} +
grep -rl foo src | xargs sed -i 's/foo/bar/g'
npx prettier --write src
npx eslint --fix src
for f in src/*.py; do echo $f; done
echo $(git rev-parse HEAD)
alembic upgrade head
psql -c 'select 1'
sqlite3 app.db '.tables'
terraform plan
ssh host ls
scp a.txt host:
tar -xzf archive.tar.gz
unzip archive.zip -d build
echo "x" > notes.txt
echo "export FOO=1" >> .env.example
brew install jq
apt-get install -y jq
sudo apt update
source .venv/bin/activate && pytest
. .venv/bin/activate && python -m pytest
export FOO=bar && npm test
nvm use 20
pre-commit run --all-files
npx create-react-app x
npx playwright test
mypy src; echo $?
ls ~
cat ~/.bashrc
* git push
* git push -u origin feature
git pull --rebase
git fetch --all
* git checkout main
* git checkout -- src/main.py
git restore src/main.py
* git reset --hard HEAD~1
* git merge feature
* git rebase main
git cherry-pick abc1234
* git stash
* git stash pop
git tag v1.0
git commit --amend -m "Better words"
git branch -D feature
git rm old.txt
git mv a.txt b.txt
git worktree add trees/next main
* python -c "print(1)"
node -e "console.log(1)"
ruff check --fix
ruff format
black .
* pip install requests
python -m pip install requests
* npm install
npm install --save-dev jest
* npm ci
npm start
npx create-app
cargo add serde
go get example.com/x
* cp a.txt b.txt
* mv a.txt b.txt
* rm old.txt
* rm -rf build
* chmod +x script.sh
make -f other.mk
npm run lint -- --max-warnings 0
git push origin main
git push origin HEAD
git push --force-with-lease
git push --tags
* git pull
git pull origin main
git pull --ff-only
* git fetch
git fetch origin
git fetch origin main
git checkout .
git checkout HEAD~1
git checkout feature
git checkout HEAD -- src/main.py
git checkout main -- README.md
git switch -C feature
git switch --discard-changes main
git restore .
git restore --staged src/main.py
git reset
git reset HEAD~1
git reset --soft HEAD~1
git reset HEAD README.md
git reset --hard
git reset --hard origin/main
git merge main
git merge --no-ff feature
git merge --abort
git rebase origin/main
git rebase --continue
git rebase --abort
git rebase -i HEAD~3
git cherry-pick --abort
git revert HEAD
git revert --no-edit HEAD
git stash push -m wip
git stash -u
git stash apply
git stash drop
git stash clear
git tag -a v1.0 -m "One"
git tag -d v1.0
git commit --amend --no-edit
git branch -d feature
git branch -m old new
git rm --cached a.txt
git clean -fd
git clean -f
git apply a.patch
git init
git worktree remove trees/next
git add -f build.log
git add -p
git config user.name Ada
git clone https://github.com/a/b
git remote add upstream https://github.com/a/b
git submodule update --init
git -c color.ui=never diff
git diff --no-index a.txt b.txt
git bisect start
git log -L 10,20:src/main.py
python -c "import sys; print(sys.version)"
python3 -c "import json; print(1)"
python -m http.server 8000
python -m pip install -e .
python -m pip install -r requirements.txt
python -m build
python -m timeit "1+1"
python -m mypackage
* pip install -r requirements.txt
* pip install -e .
pip install --upgrade pip
pip3 install requests
pip uninstall -y requests
pip download requests
uv sync
uv pip install requests
poetry install
poetry add requests
tox
tox -e py311
nox
pytest -c other.ini
pytest -o addopts=
pytest -p xdist
pytest --junitxml=report.xml
pytest --snapshot-update
pytest --rootdir=tests
* ruff check --fix .
ruff check --fix --unsafe-fixes
ruff check --config ruff.toml
* ruff format .
ruff format src tests
black src
isort .
mypy --install-types
npm install express
npm install -D typescript
npm i
npm update
npm outdated
npm audit
npm run lint -- --fix
npm run test -- --watch
npm test -- -u
npm test -- src/app.test.js
npm init -y
npm exec tsc
npx prettier --write .
pnpm install
pnpm add lodash
yarn install
yarn add lodash
yarn
node -p process.version
node -r ts-node/register src/index.ts
eslint . --fix
prettier --write .
jest -u
vitest
tsc --outDir dist
make VERBOSE=1
make install PREFIX=dist
make CC=clang
* cargo fmt
cargo add tokio
cargo update
cargo install ripgrep
cargo clean
cargo fix
cargo run -- input.txt
cargo build --target x86_64-unknown-linux-musl
go fmt ./...
go mod tidy
go mod download
go get ./...
go generate ./...
go install ./...
gofmt -w .
go test -coverprofile=c.out ./...
go build -ldflags "-s -w" .
gcc -E main.c
cmake --install build
ninja -t clean
cp -r src backup
cp README.md docs.md
mv src/old.py src/new.py
rm -f build.log
rm -r dist
rmdir build
chmod 755 script.sh
ln -s README.md link
tee out.txt
* echo hello > out.txt
echo hello >> README.md
* cat a.txt > b.txt
pytest -q > results.txt
ls | tee files.txt
sort a.txt > sorted.txt
git diff > changes.patch
sed -i s/a/b/ README.md
* sed -i "s/old/new/g" src/main.py
find . -name "*.pyc" -delete
find . -type d -name __pycache__ -exec rm -rf {} +
find . -name "*.py" | xargs rm
sort -o sorted.txt a.txt
tar xzf a.tgz
tar -xzf a.tgz -C build
tar -czf out.tgz src
unzip a.zip
unzip -o a.zip -d build
zip -r out.zip src
gzip a.txt
patch -p1 -i a.patch
awk 'BEGIN {x=1} {if ($1 > x) print}' a.txt
awk -f script.awk a.txt
perl -pe s/a/b/ a.txt
perl -v
ruby script.rb
php -v
java -version
mvn test
gradle build
dotnet build
swift build
* docker ps
docker images
docker compose up -d
docker build .
docker logs web
kubectl get pods
gh pr list
gh pr view 1
gh pr create --fill
gh issue list
* curl https://api.github.com
curl -s https://packages.example.org/simple/
curl -I http://localhost:8000
wget https://example.com/a.tgz
ssh build.example.com
kill 1234
pkill node
lsof -i :3000
bash build.sh
sh test.sh
./script.sh
source venv/bin/activate
export FOO=1
for f in a b; do echo $f; done
echo $HOME
cat $(git ls-files)
if [ -f a.txt ]; then echo yes; fi
cd src && rm -f old.txt
git stash && pytest -q
git add -A && git commit -m "x" && git push
pip install requests && pytest
ruff check --fix . && pytest -q
npm install && npm test
npm ci && npm run build
make clean && make && ./main
sqlite3 app.db .tables
psql -c "select 1"
cat script.py | python
python3 -
"""


@dataclass(frozen=True)
class Usual:
    """A line, the word it should get, and whether it is one of the most usual."""

    text: str
    word: Word
    is_common: bool


def usual() -> list[Usual]:
    """Return every line of the lists."""
    return [
        Usual(text=line.removeprefix(_MARK), word=word, is_common=line.startswith(_MARK))
        for word, lines in ((Word.ALLOW, ALLOWED), (Word.ASK, ASKED))
        for line in lines.strip().splitlines()
    ]
