import type { UIMessage } from 'ai';
import { isRecord } from 'millrace/values';
import { chat } from './tab.js';
import type { Line, World } from './world.js';

/** A path of a conversation, as `GET /api/chat/:id` shows it. */
export interface View {
  readonly status: number;
  readonly messages: readonly UIMessage[];
  readonly head: string | null;
  /** The siblings of a message, itself included. */
  readonly branches: Readonly<Record<string, readonly string[]>>;
  readonly running?: string;
}

export const viewOf = async ({ url }: World, at?: string, id = chat): Promise<View> => {
  const query = at === undefined ? '' : `?at=${encodeURIComponent(at)}`;
  const response = await fetch(`${url()}/api/chat/${id}${query}`);
  const body: unknown = await response.json();
  if (!isRecord(body)) throw new Error('It is not an object.');
  return { messages: [], head: null, branches: {}, ...body, status: response.status };
};

/** All paths of a conversation, that of its head first. */
export const viewsOf = async (world: World, id = chat): Promise<readonly View[]> => {
  const views: View[] = [];
  const known = new Set<string>();
  const walk = async (at?: string): Promise<void> => {
    const view = await viewOf(world, at, id);
    if (view.status !== 200) throw new Error(`GET at ${at ?? 'the head'}: ${view.status}`);
    views.push(view);
    for (const { id: shown } of view.messages) known.add(shown);
    for (const sibling of Object.values(view.branches).flat()) {
      if (!known.has(sibling)) await walk(sibling);
    }
  };
  await walk();
  return views;
};

export const textIn = ({ parts }: Pick<UIMessage, 'parts'>): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The texts of messages of the AI SDK. */
export const linesIn = (messages: readonly UIMessage[]): readonly Line[] =>
  messages.flatMap((message): readonly Line[] => {
    const { role } = message;
    const text = textIn(message);
    return role === 'system' || text === '' ? [] : [{ role, text }];
  });

/** The path with an answer. */
export const viewWith = async (world: World, answer: string, id = chat): Promise<View> => {
  const views = await viewsOf(world, id);
  const found = views.find(({ messages }) => linesIn(messages).some(({ text }) => text === answer));
  if (found === undefined) throw new Error(`The server shows no path with '${answer}'.`);
  return found;
};
