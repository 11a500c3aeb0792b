import type { Agent } from '../agent.js';
import type { Input, InputMessage } from '../input.js';
import { type ContentBlock, isContentBlock } from '../message.js';
import type { Reply } from '../reply.js';
import { messagesIn } from './messages-in.js';

/** What was said, in the order in which it was said. The name of each reply is that of the agent whose turn it was. */
export type Transcript<Said extends Reply = Reply> = readonly Said[];

/** What an agent says. */
export type ReplyOf<AnyAgent> = AnyAgent extends Agent<infer Output> ? Reply<Output> : never;

export interface Hearing {
  readonly history: readonly InputMessage[];
  readonly input: Input;
}

const nothingNew = 'Nobody else has said anything. Go on.';

/**
 * What an agent gets to hear: as its input what was asked and what the others have said, or, when it has had a turn before, what they have said since; all before that is
 * its history.
 */
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
