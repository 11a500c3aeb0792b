import { promptSign } from '../presentation/introduction.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';

/** Shows a question on one line, as if it had just been asked. */
export const questionLine = (question: string, theme: Theme): string =>
  `${promptSign(theme)}${oneLine(question, theme.width - 2, theme)}\n`;
