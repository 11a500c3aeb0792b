import { withoutSecrets } from 'millrace/values';

/** Replaces secrets in a text that a person copies by a variable. The server and the page do so. */
export const withoutKeys = (text: string): string => withoutSecrets(text, '$API_KEY');
