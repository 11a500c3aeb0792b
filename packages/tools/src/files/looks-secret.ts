/**
 * Whether a path looks like that of a secret, such as keys, credentials and `.env`, in any directory. It only checks
 * names. Templates such as `.env.example` and public keys are not secret.
 */
export const looksSecret = (path: string): boolean => {
  const parts = path.split(/[/\\]/u).map(opened);
  const name = parts.at(-1) ?? '';
  if (parts.some((part) => secretDirectories.has(part))) return true;
  return (
    !harmless.test(name) && (secretNames.has(name) || secretForms.some((form) => form.test(name)))
  );
};

/**
 * The name that a system may open: some ignore case and invisible characters, and Windows what follows a colon (`.env::$DATA`), and dots
 * and spaces at the end.
 */
const opened = (name: string): string =>
  name
    .replace(/\p{Cf}/gu, '')
    .replace(/(?<!^):.*$/su, '')
    .replace(/(?<![. ])[. ]+$/u, '')
    .toLowerCase();

const secretDirectories: ReadonlySet<string> = new Set([
  '.git',
  // Its short name on Windows.
  'git~1',
  '.ssh',
  '.aws',
  '.azure',
  '.gnupg',
  '.kube',
  '.docker',
  '.terraform',
  '.oci',
  '.password-store',
  '.vault',
  '.millrace',
]);

const harmless = /\.(?:example|sample|template|dist|pub)$/u;

const secretNames: ReadonlySet<string> = new Set([
  '.npmrc',
  '.yarnrc',
  '.yarnrc.yml',
  '.netrc',
  '_netrc',
  '.pypirc',
  '.pgpass',
  '.htpasswd',
  '.git-credentials',
  '.dockercfg',
  '.envrc',
  '.dev.vars',
  '.flaskenv',
  '.vault-token',
  '.my.cnf',
  '.mylogin.cnf',
  '.s3cfg',
  '.boto',
  '.databrickscfg',
  '.snowsql',
  '.claude.json',
  'credentials',
  'auth.json',
  'token.json',
  'cookies.sqlite',
  'key4.db',
  'login data',
  'logins.json',
  'kubeconfig',
  'rclone.conf',
  'wp-config.php',
  'local.settings.json',
  'application_default_credentials.json',
  'shadow',
]);

const secretForms: readonly RegExp[] = [
  /^\.env(?:[._~-].*)?$/u,
  /\.env~?$/u,
  /^id_(?:rsa|dsa|ecdsa|ed25519)/u,
  /\.(?:pem|key|p8|p12|pfx|jks|keystore|keychain|keychain-db|kdbx?|ppk|asc|gpg|age|ovpn|tfstate|tfvars)$/u,
  /\.tfstate\.backup$/u,
  /^(?:.+[._-])?(?:secrets?|credentials?)(?:\..+)?\.(?:json|ya?ml|toml|ini|env|txt|properties|xml|cfg|conf)$/u,
  /^(?:service[-_]?account|client[-_]secret|.*firebase-adminsdk).*\.json$/u,
  /^\.[a-z_]+_history$/u,
];
