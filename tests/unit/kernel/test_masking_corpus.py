"""Two corpora for masking: what must be hidden, and what must come out exactly as it went in."""

from __future__ import annotations

import json

import pytest

from toolgate.kernel.masking import Masker

C = "zK7qP" + "wX2vB9" + "tR4m"  # a made-up password: no vendor's format
L = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8" * 3  # a long random-looking body for token formats
HEX = "0a1b2c3d4e5f6789" * 4
WORDS = "correct horse " + "battery staple"

SECRET_VALUES: list[object] = [
    # keys in mappings
    *(
        {key: C}
        for key in (
            "password", "Password", "PASSWORD", "db_password", "dbPassword", "DbPassword", "DB_PASSWORD", "user.password",
            "passwd", "pwd", "passphrase", "pass", "db_pass", "smtpPass", "PGPASSWORD", "MYSQL_PWD", "secret", "secrets",
            "client_secret", "clientSecret", "client-secret", "token", "access_token", "accessToken", "refresh_token",
            "id_token", "csrf_token", "x-csrf-token", "authToken", "_authToken", "AUTH_TOKEN", "authtoken", "api_key",
            "apiKey", "apikey", "APIKEY", "APIKey", "X-Api-Key", "x_api_key", "API_KEY", "openai_api_key", "access_key",
            "secret_access_key", "AWS_SECRET_ACCESS_KEY", "private_key", "privateKey", "signing_key", "encryption_key",
            "ssh_key", "credential", "credentials", "aws_credentials", "auth", "authorization", "Authorization",
            "Proxy-Authorization", "proxy_authorization", "bearer", "bearer_token", "cookie", "Cookie", "Set-Cookie",
            "session_token", "sessionid", "jwt", "otp", "totp_secret", "cvv", "cvc", "connection_string",
            "connectionString", "dsn", "webhook_secret", "pem", "passcode", "account_key", "AccountKey",
            "SharedAccessKey", "master_key", "password1", "password_2", "new_password", "oldPassword", "confirm_password",
            "password_hash", "basic_auth", "auth_header", "api_token", "bot_token", "deploy_token", "secret_key",
            "SECRET_KEY", "app_secret", "signing_secret", "jwt_secret", "sas_token", "pw", "db_pw", "user_credentials",
            "passwords", "api_keys", "recovery_code", "secret_value", "token_secret", "auth_code", "password_confirmation",
            "Ocp-Apim-Subscription-Key", "hmac_key", "license_key", "seed_phrase", "mnemonic", "vault_token", "secret_id",
            "spring.datasource.password", "DATABASE_PASSWORD", "rootPassword", "adminPass", "wifi_password", "userPasswd",
            "GITHUB_TOKEN", "NPM_TOKEN", "HF_TOKEN", "slackToken", "stripeSecretKey", "contraseña", "Passwort", "secretKey",
        )
    ),
    {"password": {"value": C}}, {"credentials": [C, "x"]}, {"auth": {"username": "bob", "data": [{"x": C}]}},
    {"a": [{"b": {"password": C}}]}, {"password": int("48151623427788") and C}, {"headers": {"Authorization": "Bearer " + C}},
    {"headers": {"cookie": "sid=" + C + "; theme=dark"}}, {"env": {"DB_PASSWORD": C}}, ({"token": C},),
    {"config": json.dumps({"password": C})}, {"body": json.dumps({"outer": json.dumps({"api_key": C})})},
    {"body": json.dumps(json.dumps({"deep": json.dumps({"secret": C})}))},
    # pairs
    {"name": "API_KEY", "value": C}, {"key": "password", "value": C}, {"Name": "/prod/db/password", "Value": C},
    {"name": "Authorization", "value": "Bearer " + C}, [{"name": "DB_PASS", "value": C}], {"header": "X-Api-Key", "value": C},
    {"Key": "secret", "Value": {"nested": C}}, [["password", C]], ("Authorization", "Bearer " + C), [["X-Api-Key", C], ["a", "b"]],
    [("cookie", "sid=" + C)], ["token", C], {"headers": [["authorization", "Basic " + C]]},
    # argument lists
    ["curl", "-H", "Authorization: Bearer " + C, "https://x.y"], ["--password", C], ["app", "--token=" + C], ["--api-key", C],
    ["curl", "-u", "user:" + C, "https://x.y"], ["curl", "--user", "bob:" + C], ["PGPASSWORD=" + C, "psql"], ["mysql", "-p" + C],
    ["docker", "login", "-u", "me", "-p", C], ["sshpass", "-p", C, "ssh", "h"], ["redis-cli", "-a", C], ["-password", C],
    ["docker", "run", "-e", "POSTGRES_PASSWORD=" + C, "postgres"], ["gh", "auth", "login", "--with-token", "--token", C],
    ["helm", "install", "--set", "auth.password=" + C], ["curl", "-H", "X-API-Key: " + C], ["curl", "-b", "session=" + C],
    ["psql", "postgresql://u:" + C + "@h/db"], ["vault", "login", "token=" + C], ["mongosh", "-u", "a", "-p", C],
    ["az", "login", "--service-principal", "-p", C], ["--client-secret", C, "--verbose"], ["env", "API_KEY=" + C, "run"],
    # assignments in text
    f"password={C}", f"PASSWORD: {C}", f"password = {C}", f"password: {C}", f"export DB_PASSWORD='{WORDS}'",
    f'export TOKEN="{C}"', f"DB_PASSWORD={C}\nDEBUG=1", f"# config\nsecret_key = '{C}'", f'"apiKey": "{C}"', f"'password': '{C}'",
    f'{{"user": "bob", "password": "{C}", "x": 1}} trailing', f'request failed body={{"token": "{C}"}}', f"api_key: {C}",
    f"apikey={C}&x=1", f'password="{C}"', f"password='{C}'", f"password=`{C}`", f'const password = "{C}";', f'password := "{C}"',
    f"'password' => '{C}',", f'os.environ["API_KEY"] = "{C}"', f'headers["Authorization"] = "Bearer {C}"',
    f'requests.get(url, auth=("bob", "{C}"))', f'Client(api_key="{C}")', f"Config(user='x', password='{C}')",
    f"<password>{C}</password>", f'<add key="Password" value="{C}"/>', f"- name: API_KEY\n  value: {C}", f"password: |\n  {C}\nuser: x",
    f"db:\n  password: {C}\n  user: bob", f"Server=h;Database=d;User Id=sa;Password={C};", f"host=h password={C} dbname=d",
    f"AccountName=x;AccountKey={C}==;EndpointSuffix=core", f"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey={C}",
    f"$env:API_TOKEN = '{C}'", f"set PASSWORD={C}", f"ENV API_KEY {C}", f"ARG TOKEN={C}", f"docker run -e SECRET={C} img",
    f"password is {C}", f"The password is '{C}'.", f"my password: {C}", f"Password for bob is set; password={C}.", f"pwd={C},user=x",
    f"API key: {C}", f"Access token: {C}", f"client secret = {C}", f"Connection string: {C}", f"{{\\\"password\\\": \\\"{C}\\\"}}",
    f'log: "{{\\"a\\": {{\\"token\\": \\"{C}\\"}}}}"', f"\\npassword={C}\\nuser=x", f"password%3D{C}%26user%3Dbob",
    f"%7B%22password%22%3A%22{C}%22%7D", f"ALTER USER bob WITH PASSWORD '{C}';", f"CREATE USER x IDENTIFIED BY '{C}';",
    f"machine h login bob password {C}", f"//registry.npmjs.org/:_authToken={C}", f"aws_secret_access_key = {C}",
    f"[default]\naws_access_key_id = x\naws_secret_access_key={C}", f"token: {C}", f"secret: {C}", f"credentials={C}",
    f"passphrase: {WORDS}", f"PASSWORD={C} psql -h db", f"密码: {C}", f"пароль: {C}", f"Passwort: {C}", f"contraseña={C}",
    f'if password == "{C}":', f"password: !!str {C}" if False else f"password:   {C}", f"pw: {C}", f"otp={C}", f'data = {{"token": "{C}"}}',
    f'.header("X-Api-Key", "{C}")', f'setRequestHeader("Authorization", "Bearer {C}")', f"jwt_secret = \"{C}\"", f"tokens: ok\ntoken: {C}",
    f'"credentials": {{"user": "bob", "value": "{C}"}}', f"auth_token={C}", f"sessionid={C}", f"db.password={C}", f"--set db.password={C}",
    f"spring.datasource.password={C}", f"password=a,{C}", f"password=a;{C}", f"password=a&{C}!", f"password=x)y{C}", f"hunter password={C}<br>",
    # headers
    f"Authorization: Bearer {C}", f"authorization: bearer {C}", f"Authorization: Basic {C}", f"Authorization: token {C}",
    f"Authorization: {C}", f"Authorization: Digest username=\"b\", response=\"{C}\"", f"Proxy-Authorization: Basic {C}",
    f"Authorization: AWS4-HMAC-SHA256 Credential=AK/2020/x, Signature={C}", f"X-Api-Key: {C}", f"Cookie: a=b; sid={C}",
    f"Set-Cookie: sid={C}; Path=/; HttpOnly", f"x-auth-token: {C}", f"GET / HTTP/1.1\r\nCookie: sid={C}\r\nHost: x",
    f"curl -H 'Authorization: Bearer {C}' https://x", f'curl -H "X-Api-Key: {C}"', f"sent Bearer {C} to host", f"X-Vault-Token: {C}",
    f"PRIVATE-TOKEN: {C}", f"> authorization: Bearer {C}", f"Authorization=Bearer {C}", "Basic Ym9iOmh1bnRlcjJodW50ZXI=",
    # URLs
    f"https://user:{C}@host/path", f"postgresql://u:{C}@h:5432/db", f"redis://:{C}@h:6379/0", f"https://{C}{C}@github.com/x.git",
    f"mongodb+srv://u:{C}@c.mongodb.net/x", f"amqp://g:{C}@mq//", f"https://x/?token={C}", f"https://x/?a=1&api_key={C}&b=2",
    f"https://x/#access_token={C}&t=1", f"https://b.blob.core.windows.net/c?sv=1&sig={C}", f"https://s3/x?X-Amz-Signature={C}&a=b",
    f"https://x/?X-Amz-Security-Token={C}", f"postgres://u:p@{C}@h/db", f"postgres://u:p/{C}@h/db", f"u:{C}@tcp(h:3306)/db",
    f"jdbc:oracle:thin:scott/{C}@h:1521", f"jdbc:postgresql://h/db?user=x&password={C}", f"git clone https://x-access-token:{C}@github.com/a/b",
    f"ftp://bob:{C}@h", f"{{'url': 'https://a:{C}@h'}}", f"smtp://a%40b.c:{C}@h:587", f"https://h/cb?code=1&access_token={C}",
    # command lines in text
    f"--password {C}", f"--token '{C}' --x", f"tool --api-key={C}", f"curl -u bob:{C} https://x", f"mysql -u root -p{C} db",
    f"docker login -u me -p {C} reg", f"sshpass -p {C} ssh h", f"redis-cli -h x -a {C} ping", f"openssl rsa -passin pass:{C}",
    f"echo {C} | docker login --password-stdin", f"mongodump -u a -p {C}", f"psql 'password={C}'", f"aws configure set aws_secret_access_key {C}",
    f"kubectl create secret generic s --from-literal=password={C}", f"gpg --batch --passphrase {C} -d f", f"wget --http-password={C} x",
    f"ldapsearch -D cn=a -w {C}", f"sqlcmd -U sa -P {C}", f"zip -P {C} a.zip b", f"7z x -p{C} a.7z", f"vault login -method=x password={C}",
    f"az login --username u --password \"{C}\"", f"curl -b 'sid={C}' x", f"npm config set //r/:_authToken {C}" if False else f"npm config set _authToken {C}",
    # exceptions
    RuntimeError(f"login failed for https://bob:{C}@h"), ValueError(f"bad config: password={C}"), KeyError(f"token={C}"),
    f"password={C}".encode(), {f"password={C}": 1},
    # token formats
    *(
        f"see {token} here"
        for token in (
            "AKIA" + "Q" * 8 + "7" * 8, "ASIA" + "Q" * 8 + "7" * 8, "ghp_" + L[:36], "gho_" + L[:36], "ghu_" + L[:36], "ghs_" + L[:36],
            "ghr_" + L[:36], "github_pat_" + L[:22] + "_" + L[:59], "glpat-" + L[:20], "xoxb-" + "1" * 12 + "-" + L[:24],
            "xoxp-" + "1" * 12 + "-" + L[:24], "xapp-1-A0-1-" + HEX, "https://hooks.slack.com/services/T00/B00/" + L[:24],
            "sk_live_" + L[:24], "rk_live_" + L[:24], "sk_test_" + L[:24], "whsec_" + L[:32], "sk-" + L[:48], "sk-proj-" + L[:48],
            "sk-ant-api03-" + L[:60], "AIza" + L[:35], "ya29." + L[:60], "GOCSPX-" + L[:28], "npm_" + L[:36], "pypi-AgEI" + L[:60],
            "hf_" + L[:34], "SG." + L[:22] + "." + L[:43], "dop_v1_" + HEX, "shpat_" + HEX[:32], "123456789:AA" + L[:33],
            "M" + L[:23] + "." + L[:6] + "." + L[:27], "eyJ" + L[:20] + ".eyJ" + L[:30] + "." + L[:43], "hvs." + L[:24], "dapi" + HEX[:32],
            "lin_api_" + L[:40], "secret_" + L[:43], "ntn_" + L[:46], "AGE-SECRET-KEY-1" + "QP7" * 19, "key-" + HEX[:32],
            HEX[:32] + "-us12", "sq0csp-" + L[:43], "dckr_pat_" + L[:27], "glsa_" + L[:32], "r8_" + L[:37], "gsk_" + L[:52],
            "https://discord.com/api/webhooks/123456789/" + L[:60], "SK" + HEX[:32], "sk-or-v1-" + HEX, "xox" + "e.xoxp-1-" + L[:60],
        )
    ),
    "-----BEGIN RSA PRIVATE KEY-----\n" + L + "\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\\n" + L + "\\n",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n" + L, {"k": "-----BEGIN EC PRIVATE KEY-----\n" + L + "\n-----END EC PRIVATE KEY-----"},
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + L + "\n-----END PGP PRIVATE KEY BLOCK-----",
]  # fmt: skip

CANARIES = (C, L[:12], L[12:24], HEX[:12], WORDS, "battery", "Ym9iOmh1", "Q" * 8 + "7", "QP7" * 4)

BENIGN_KEYS = (
    "author authors author_id authored_by authority authorities authentic max_tokens tokens token_count tokenCount "
    "token_type tokenizer tokenizers_parallelism TOKENIZERS_PARALLELISM prompt_tokens completion_tokens num_tokens "
    "token_limit tokens_used total_tokens next_page_token nextPageToken pageToken NextToken continuation_token "
    "keyboard primary_key foreign_key public_key publicKey ssh_public_key key keys key_id keyId access_key_id sort_key "
    "cache_key partition_key passenger compass passed bypass passes pass_rate secretary password_policy password_length "
    "password_min_length has_password password_required is_secret reset_password_url password_changed_at auth_method "
    "auth_type auth_url auth_provider authType oauth_provider oauthProvider session_id sessionId session secret_name "
    "secretName secret_arn token_url token_endpoint token_expires_at token_expires_in cookie_policy cookie_consent "
    "cookie_domain passport passive passthrough monkey turkey hockey keynote keyword keywords donkey key_name eos_token "
    "bos_token pad_token special_tokens tokens_per_second cost_per_token author_email authorized authorized_keys "
    "unauthorized credentialed pinned pinning spinner opinion shipping pin_count dsnless pemmican code status_code "
    "country_code zip_code error_code postal_code language_code card cardinality discard cards connection connections "
    "conn_id phrase paraphrase signature sig_figs design assign signal tokenized tokenization detokenize bearer_format "
    "password_file private_key_path api_key_id credential_type max_token_length secret_version auth_required auth_enabled "
    "authentication jwt_issuer jwt_algorithm otp_enabled passwordless first_token_ms mask_token routing_key project_key "
    "object_key s3_key row_key hot_key hotkeys storage_key user_id request_id username user email path"
).split()

BENIGN_VALUES: list[object] = [
    *({key: "plain-value 7"} for key in BENIGN_KEYS),
    {"city": "Paris", "days": 3, "units": "metric"}, {"password": None}, {"password": ""}, {"password": True}, {"token": False},
    {"secrets": []}, {"auth": {}}, {"auth": {"enabled": True}}, {"pass": 12, "fail": 3}, {"pin": 13, "mode": "OUTPUT"},
    {"password": "${DB_PASSWORD}"}, {"token": "{{ token }}"}, {"api_key": "<your key>"}, {"password": "***"}, {"secret": "[REDACTED]"},
    {"dependencies": {"cookie": "0.5.0", "basic-auth": "~2.0.1", "jsonwebtoken": "^9.0.0", "csrf": "3.1.0"}},
    {"properties": {"password": {"type": "string", "description": "The password", "minLength": 8}}},
    {"required": ["password", "otp_value"]}, {"fields": ["token", "x1"]}, {"tags": ["auth", "login"]}, ["auth", "login"], ["password", "email"],
    ["username", "password"], {"name": "color", "value": "red"}, {"name": "LOG_LEVEL", "value": "debug"}, {"key": "Enter", "value": "13"},
    {"a": [1, 2.5, None, True, "x", {"b": []}]}, [], {}, "", 0, None, 1.5, ["a", ["b", ("c",)]], {1: "a", None: "b"},
    {"/auth/login": "POST", "/api/token": "GET"}, {"src/auth.py": 12, "token.py": "x y"}, b"plain bytes \xff", {"x": b"ok"},
    # argument lists
    ["git", "commit", "-m", "fix token parsing"], ["docker", "run", "-p", "8080:80", "nginx"], ["ssh", "-p", "2222", "host"],
    ["mkdir", "-p", "a/b"], ["docker", "run", "--user", "1000:1000", "x"], ["pip", "install", "--user", "x"], ["pytest", "-k", "token"],
    ["tar", "-xzf", "a.tgz"], ["docker", "login", "--password-stdin"], ["tool", "--token-file", "/run/t"], ["cp", "-a", "a", "b"],
    ["kubectl", "get", "secret", "my-secret"], ["grep", "-r", "password", "src"], ["--max-tokens", "512"], ["ls", "-la"],
    ["python", "-m", "toolgate", "--auth-type", "basic"], ["mysql", "-u", "root", "-p", "mydb"], ["sort", "-u", "a:b"],
    # prose
    "Please reset your password: visit https://example.com/reset to continue.", "the token expired", "Your password must be at least 12 characters.",
    "password must be at least 12 characters", "Password: required", "password: must contain a digit", "Forgot password: click here",
    "OperationalError: password authentication failed for user \"x\"", "Secret Santa: draw names on Friday", "The secret: use fresh basil.",
    "He passed the keys to the author of the book.", "Basic authentication is not recommended.", "She is the bearer of good news.",
    "A cookie recipe: flour, sugar, butter.", "Access token has expired; please sign in again.", "Bearer authentication uses tokens.",
    "The API key is missing.", "API key: missing", "Invalid API key provided.", "Authorization: required", "auth: failed", "Auth: OK",
    "Token: expired", "Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", "SyntaxError: Unexpected token: punc (})",
    "Unexpected token } in JSON at position 12", "password incorrect", "Enter passphrase for key '/home/u/.ssh/id_rsa':", "Password:",
    "[sudo] password for bob:", "bob@host's password:", "The password is incorrect.", "The password is stored hashed.", "password is too short",
    "The token is 32 bytes long", "Use a password manager: it is safer.", "passwords: never share them", "note: the secret is out",
    "He said: \"keep it secret\".", "Remember the pin: it is on the map.", "My opinion: shipping is slow.", "Meeting at 10:30, room 5: budget",
    "token: name (foo)", "Pass: 12, Fail: 3", "PASS: test_token (0.01s)", "FAIL: test_password", "tests passed=12 failed=0", "keys: 5",
    "El token ha caducado.", "Le mot de passe doit contenir 12 caractères.", "Das Passwort ist falsch.", "密码错误，请重试。", "パスワードを入力してください。",
    "Пароль неверный.", "La contraseña es obligatoria.", "O token expirou: faça login novamente.", "비밀번호를 입력하세요", "הסיסמה שגויה",
    "The quick brown fox: jumps over the lazy dog.", "Ratio 3:1, time 12:30:45, a=b", "C'est la vie: rien à faire", "50% off + 20% = 60%?",
    "Deploy at 5pm; auth service v2.3.1 rolled out", "LGTM! One nit: rename `token` to `cursor`.", "key = value pairs are parsed", "the key: value form",
    # code
    "password = get_password()", "token = os.environ[\"TOKEN\"]", "def login(user: str, password: str) -> Token:", "password: str", "token: str | None = None",
    "api_key=settings.API_KEY", "if token == expected_token:", "self.token = token", "const token = await getToken();", "password?: string;",
    "headers = {\"Authorization\": f\"Bearer {token}\"}", "`Bearer ${token}`", "Authorization: `Bearer ${token}`", "password=$PASSWORD", "PASSWORD=${PASSWORD}",
    "password: ${{ secrets.DB_PASSWORD }}", "token: '{{ vault_token }}'", "password = None", "token = ''", "auth=auth,", "password=password,", "secret = Secret.from_name(name)",
    "password = request.form[\"password\"]", "credentials: 'include'", "credentials: \"same-origin\"", "auth = HTTPBasicAuth(user, password)",
    "token := lexer.Next()", "let token = tokens[i];", "for token in tokens:", "tokens = text.split()", "assert token is not None", "return token",
    "password = models.CharField(max_length=128)", "password VARCHAR(255) NOT NULL,", "token: Token", "auth: AuthConfig", "SELECT password FROM users WHERE id = 1",
    "UPDATE t SET password = :password WHERE id = :id", "WHERE token = ?", "password = %s", "print(f\"token={token}\")", "log.info(\"token=%s\", token)",
    "if (password !== confirm) {", "password => hash(password)", "type Password = string", "class TokenError(Exception):", "import secrets",
    "secrets: inherit", "from auth import login", "export default auth;", "@auth.route('/login')", "max_tokens=4096, temperature=0.7", "\"max_tokens\": 4096",
    "tokenizer = AutoTokenizer.from_pretrained('x')", "key = lambda item: item[0]", "sorted(d, key=len)", "cookie = SimpleCookie()", "cookies: dict[str, str] = {}",
    "fn token(&self) -> &str {", "pub password: String,", "char *password = NULL;", "std::string token;", "String password = System.getenv(\"PW\");", "@token_required",
    "<input type=\"password\" name=\"password\" placeholder=\"Password\">", "<label for=\"password\">Password</label>", "<token>", "List<Token> tokens", "password: SecretStr",
    "x = a if pin else b", "GPIO.setup(pin, OUT)", "pin: 13", "pinMode(LED_PIN, OUTPUT);", "case 'token': return 1;", "token::Type", "auth::login()", "raise AuthError(\"no token\")",
    # config, YAML, lock files
    "secretName: my-tls", "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password", "auth: true", "auth: none", "auth_method: ldap", "token_ttl: 3600", "password_min_length = 12",
    "passwordPolicy:\n  minLength: 12", "js-tokens@^4.0.0:\n  version \"4.0.0\"", "\"cookie\": \"0.5.0\",", "cookie@0.5.0:", "PyJWT==2.8.0", "python-jose[cryptography]>=3.3",
    "integrity sha512-" + "aB3/dE5+" * 10 + "==", "    {file = \"x.whl\", hash = \"sha256:" + HEX + "\"},", "password-store: pass", "key: value", "keys:\n  - a\n  - b",
    "author = \"Bob <bob@example.com>\"", "authors = [\"A\"]", "[auth]\nenabled = true", "cookie_secure = true", "session_timeout=3600", "token_count=512 latency_ms=20",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x", "password: <password>", "api_key: YOUR_API_KEY" if False else "api_key: <YOUR_API_KEY>", "PASSWORD=", "TOKEN=\nX=1", "password=*****",
    # logs, git, tools
    "2024-05-01T10:00:00Z INFO auth: user=bob logged in", "level=info msg=\"token refreshed\" user=bob", "commit " + HEX[:40], "Author: Bob <bob@example.com>",
    " src/auth/token.py | 12 ++++----", "diff --git a/auth.py b/auth.py", "index 0a1b2c3..4d5e6f7 100644", "abc1234 auth: fix login redirect", "fix(auth): handle expired tokens",
    "feat(token): add refresh", "create mode 100644 src/password.py", "On branch feature/api-key-rotation", "modified:   src/secrets.py", "/etc/passwd: No such file or directory",
    "-rw-r--r-- 1 bob bob 12 token.txt", "sha256:" + HEX, HEX[:40], "550e8400-e29b-41d4-a716-446655440000", "data:image/png;base64,iVBORw0KGgo" + "AAAA" * 20,
    "Successfully installed tokenizers-0.15.0 sk-learn-0.0", "kubectl get secrets -n prod", "git config credential.helper store", "npm ERR! auth required", "HTTP/1.1 401 Unauthorized",
    "WWW-Authenticate: Bearer realm=\"api\"", "Content-Type: application/json; charset=utf-8", "docker login --password-stdin", "use --token to pass a token", "the --password flag is deprecated",
    "docker build --secret id=npmrc,src=.npmrc .", "ssh -p 2222 bob@host", "mkdir -p /a/b", "docker run -p 8080:80 -u 1000:1000 x", "rsync -a src dst", "mysql -u root -p", "sk-learn", "sk_live",
    "hf_transfer", "npm_config_registry", "AIzawa", "eyJ prose", "pypi-server", "ghp", "ghp_short", "AKIA", "xoxb", "glpat-", "dapi", "SG.x.y", "version 1.2.3-beta.4+build.5",
    "/usr/local/lib/python3.11/site-packages/some_very_long_package_name/module.py", "a_very_long_identifier_name_with_many_words_in_it", "SomeVeryLongCamelCaseIdentifierName",
    # URLs
    "https://example.com/path?q=1&page=2", "https://example.com:8080/@user", "https://medium.com/@user/post", "https://unpkg.com/react@18/umd/react.js", "ssh://git@github.com/a/b.git",
    "git@github.com:org/repo.git", "https://user@host/x", "postgresql://localhost:5432/db", "mailto:bob@example.com", "http://[::1]:8080/x", "https://x.y/auth/login?next=/home", "https://x/token",
    "https://x/?tokens=5&author=bob", "https://x/?page_token=abc1", "redis://localhost:6379/0", "https://${USER}:${TOKEN}@github.com", "s3://bucket/key=value/part=1", "http://localhost:3000/#/auth",
    # embedded JSON stays byte for byte
    "{\"a\":1,  \"key\" : [1,2 ,3]}", "{\"token_count\": 5, \"author\": \"x\"}", "[1, 2,\n 3]", "{\"password\": null}", "{\"error\": \"password too short\"}", "{\"keys\": [\"a\"], \"n\": 1e400}",
    "-----BEGIN PUBLIC KEY-----\n" + L + "\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\n" + L + "\n-----END CERTIFICATE-----", "if \"-----BEGIN PRIVATE KEY-----\" in text:",
    "ssh-rsa AAAAB3NzaC1yc2E bob@host", "lone \ud800 surrogate", "İstanbul: güzel şehir, token yok",
]  # fmt: skip


def render(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


def test_the_corpora_are_large_enough() -> None:
    assert len(SECRET_VALUES) >= 150
    assert len(BENIGN_VALUES) >= 200


@pytest.mark.parametrize("value", SECRET_VALUES, ids=map(str, range(len(SECRET_VALUES))))
def test_secret_is_hidden_and_masking_again_changes_nothing(value: object) -> None:
    masker = Masker()
    masked = masker(value)
    shown = render(masked)
    assert not [canary for canary in CANARIES if canary in shown], shown
    assert "***" in shown
    assert masker(masked) == masked


@pytest.mark.parametrize("value", BENIGN_VALUES, ids=map(str, range(len(BENIGN_VALUES))))
def test_ordinary_data_comes_out_equal(value: object) -> None:
    assert Masker()(value) == value
