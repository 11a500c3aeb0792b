import type { Agent } from '../agent.js';
import type { Input, InputMessage } from '../input.js';
import { type ContentBlock, isContentBlock, textBlock } from '../message.js';
import type { Reply } from '../reply.js';

/** What was said, in the order in which it was said. The name of each reply is that of the agent whose turn it was. */
export type Transcript<Said extends Reply = Reply> = readonly Said[];

/** What an agent says. */
export type ReplyOf<AnyAgent> = AnyAgent extends Agent<infer Output> ? Reply<Output> : never;

interface Hearing {
  readonly history: readonly InputMessage[];
  readonly input: Input;
}

const nothingNew = 'Nobody else has said anything. Go on.';

/** What an agent gets to hear: as its input what was asked and what the others have said, or, when it has had a turn before, what they have said since; all before that is its history. */
export const hearing = (name: string, asked: Input, transcript: Transcript): Hearing => {
  const turns = transcript.findLastIndex((reply) => reply.name === name) + 1;
  const news = saidIn(transcript.slice(turns), name);
  if (turns === 0) return { history: [], input: withSaid(asked, news) };
  const before = saidIn(transcript.slice(0, turns), name);
  return {
    history: [...messagesIn(asked), ...before],
    input: news.length === 0 ? nothingNew : news,
  };
};

export const allHeard = (asked: Input, transcript: Transcript): Input =>
  withSaid(asked, saidIn(transcript));

const withSaid = (asked: Input, said: readonly InputMessage[]): Input =>
  said.length === 0 ? asked : [...messagesIn(asked), ...said];

/** What one hears of it: the own words as the assistant's, those of others as users' with their names. */
const saidIn = (transcript: Transcript, own?: string): readonly InputMessage[] =>
  transcript.flatMap<InputMessage>(({ reason, content, name = '' }) => {
    const words = content.filter(isContentBlock).filter(isSaid);
    if (words.length === 0 || isCut(reason)) return [];
    return name === own
      ? [{ role: 'assistant', name, content: words }]
      : [{ role: 'user', name, content: words }];
  });

const isCut = (reason: Reply['reason']): boolean =>
  reason === 'interrupted' || reason === 'stopped';

const isSaid = (block: ContentBlock): boolean => block.type !== 'text' || block.text.trim() !== '';

/** An input as a list of messages, to which others can be added. What cannot be read is left to the call that gets it. */
export const messagesIn = (input: Input): readonly InputMessage[] => {
  if (typeof input === 'string') return [userMessage(input)];
  if (!isList(input)) return [fromOthers(input)];
  const parts: readonly (ContentBlock | InputMessage | string)[] = input;
  const blocks = parts.filter(isBlock);
  if (blocks.length === parts.length) return [{ role: 'user', content: blocks }];
  return parts.flatMap((part) =>
    isBlock(part) ? [] : typeof part === 'string' ? [userMessage(part)] : [part],
  );
};

const isList = (input: Input): input is Extract<Input, readonly unknown[]> => Array.isArray(input);

const isBlock = (part: ContentBlock | InputMessage | string): part is ContentBlock =>
  isContentBlock(part);

/** A text as a message of a user's. */
const userMessage = (text: string): InputMessage => ({
  role: 'user',
  content: [textBlock(text)],
});

const fromOthers = (message: InputMessage): InputMessage =>
  message.role === 'assistant'
    ? {
        role: 'user',
        content: message.content.filter(isContentBlock),
        ...(message.name === undefined ? {} : { name: message.name }),
      }
    : message;
