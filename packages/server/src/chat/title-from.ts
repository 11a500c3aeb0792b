import { type ContentBlock, textOf } from 'millrace';
import type { KeptSession } from 'millrace/sessions';

const maxTitle = 80;

/** The first words of a question. */
export const firstWords = (text: string): string => {
  const line = text.replaceAll(/\s+/gu, ' ').trim();
  if (line.length <= maxTitle) return line;
  const cut = line.slice(0, maxTitle + 1);
  const end = cut.lastIndexOf(' ');
  return `${cut.slice(0, end > maxTitle / 2 ? end : maxTitle).replace(/[\ud800-\udbff]$/u, '')}…`;
};

/** Gives a conversation that is neither saved nor named the first words of its question. */
export const titleFrom = (
  session: KeptSession,
  question: readonly ContentBlock[] | undefined,
): void => {
  if (session.version !== undefined || session.title !== undefined) return;
  const words = question === undefined ? '' : firstWords(textOf({ content: question }));
  if (words !== '') session.rename(words);
};
