/** A conversation in the list, which the browser keeps. */
export interface ChatEntry {
  readonly id: string;
  readonly title: string;
  /** When it was last used, in milliseconds since the epoch. */
  readonly at: number;
}

const key = 'millrace.chats';
const maxChats = 200;
const maxTitle = 60;

/** Reads the list; anything else that is stored is ignored. */
export const readChats = (storage: Pick<Storage, 'getItem'>): readonly ChatEntry[] => {
  try {
    const value: unknown = JSON.parse(storage.getItem(key) ?? '[]');
    return Array.isArray(value) ? value.filter(isEntry) : [];
  } catch {
    return [];
  }
};

const isEntry = (value: unknown): value is ChatEntry =>
  typeof value === 'object' &&
  value !== null &&
  'id' in value &&
  isChatId(value.id) &&
  'title' in value &&
  typeof value.title === 'string' &&
  'at' in value &&
  typeof value.at === 'number';

/** The server accepts such ids. */
export const isChatId = (id: unknown): id is string =>
  typeof id === 'string' && /^[\w-][\w.:@-]{0,127}$/u.test(id);

/** Storage may be full or forbidden: then the list lasts as long as the page. */
export const writeChats = (
  storage: Pick<Storage, 'setItem'>,
  chats: readonly ChatEntry[],
): void => {
  try {
    storage.setItem(key, JSON.stringify(chats));
  } catch {
    // There is nothing to do about it.
  }
};

/** The list with a conversation that was used now, on top. Its first question is its title. */
export const withUse = (
  chats: readonly ChatEntry[],
  { id, question, at }: { readonly id: string; readonly question: string; readonly at: number },
): readonly ChatEntry[] => {
  const title = chats.find((chat) => chat.id === id)?.title ?? titleOf(question);
  return [{ id, title, at }, ...chats.filter((chat) => chat.id !== id)].slice(0, maxChats);
};

export const withTitle = (
  chats: readonly ChatEntry[],
  id: string,
  title: string,
): readonly ChatEntry[] =>
  chats.map((chat) => (chat.id === id ? { ...chat, title: titleOf(title) } : chat));

const titleOf = (question: string): string => {
  const line = question.trim().replaceAll(/\s+/gu, ' ');
  return line === ''
    ? 'Picture'
    : line.length > maxTitle
      ? `${line.slice(0, maxTitle - 1)}…`
      : line;
};
