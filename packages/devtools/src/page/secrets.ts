import { withoutSecrets } from 'millrace/values';

/** Replaces secrets by a variable in text that a person may copy, on the server and in the page. */
export const withoutKeys = (text: string): string => withoutSecrets(text, '$API_KEY');
