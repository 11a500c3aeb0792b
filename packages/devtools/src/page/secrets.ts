// Keys in texts that a person copies. Both the server and the page import this file.

/** Replaces keys by `$API_KEY`: those of vendors by their form, and what follows a name such as `authorization`. */
export const withoutKeys = (text: string): string =>
  forms.reduce((clean, [form, instead]) => clean.replaceAll(form, instead), text);

const name = '$API_KEY';
// In a replacement, `$$` is a dollar.
const placeholder = `$${name}`;

const forms: readonly (readonly [RegExp, string])[] = [
  [
    /\b(?:[srp]k-[\w-]{12,}|(?:gsk|xai|hf|r8|pplx|sk|rk|pk)[-_][\w-]{20,}|AIza[\w-]{30,}|(?:gh[oprsu]|github_pat|glpat|xox[abp])[-_][\w-]{16,}|AKIA[0-9A-Z]{16})/gu,
    placeholder,
  ],
  // JSON Web Tokens.
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+/gu, placeholder],
  [/\b((?:Bearer|Basic)\s+)[\w.~+/=-]{8,}/giu, `$1${placeholder}`],
  [
    /((?:api[-_]?key|authorization|access[-_]?token|client[-_]?secret|password)\\?["']?\s*[:=]\s*\\?["']?)(?!Bearer|Basic|\$)[^\s"'\\,;&})\]]{6,}/giu,
    `$1${placeholder}`,
  ],
  [/([?&](?:key|token|sig|signature)=)[^\s"'&#]{6,}/giu, `$1${placeholder}`],
  // The user and password of an address.
  [/(:\/\/)[^\s/:@"']+:[^\s/@"']+@/gu, `$1${placeholder}@`],
];
