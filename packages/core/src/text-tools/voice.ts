import type { ModelChunk } from '../model.js';
import type { Findings } from './findings.js';
import { createSpeech, type Speech } from './speech.js';

/** What text that no mark is in counts as. */
export type Channel =
  /** Not decided: it is held back. */
  | 'open'
  /** The answer, because there was too much of it to be held back. */
  | 'said'
  /** The same, in a dialect where it is a thought if an action follows. */
  | 'musing'
  | 'thought'
  /** The answer, because a label says so. */
  | 'answer'
  /** What a label calls the answer behind another one. */
  | 'again';

/** Says what is found, as soon as it is known what it is. */
export interface Voice {
  readonly speech: Speech;
  readonly channel: Channel;
  /** A label has begun the thought. */
  readonly isLabelled: boolean;
  /** Nothing has been written yet but thoughts in tags. */
  readonly isAtStart: boolean;
  /** Takes text that no mark is in. */
  literal(text: string): void;
  /** What is still held back turns out to be a thought. */
  readonly thinkHeld: () => void;
  /** Text counts as something else from here on. */
  turnTo(next: Channel, isLabelled?: boolean): void;
  /** Text behind an action is a thought. */
  followAction(): void;
  /** Takes an answer that JSON gives, and of which this has been said already. */
  giveAnswer(answer: string, said: string | undefined): void;
  /** What is still held back is the answer. */
  end(): void;
}

const maxHeld = 256;

/** Makes the voice of one reply. */
export const createVoice = (
  findings: Findings,
  isList: boolean,
  emit: (chunk: ModelChunk) => void,
): Voice => {
  const speech = createSpeech((chunk) => {
    if (chunk.type === 'thinking') findings.hasThought = true;
    emit(chunk);
  });
  let channel: Channel = 'open';
  let isLabelled = false;
  let held = '';
  let again = '';

  const literal = (text: string): void => {
    switch (channel) {
      case 'open':
        held = held === '' ? text.trimStart() : held + text;
        if (held.length >= maxHeld) settleHeld();
        return;
      case 'said':
        findings.prose.push(text);
        speech.say('text', text);
        return;
      case 'musing':
        findings.prose.push(text);
        findings.unsaid.push(text);
        speech.say('thinking', text);
        return;
      case 'thought':
        speech.say('thinking', text);
        return;
      case 'answer':
        findings.answer?.push(text);
        if (!hasAsked()) speech.say('text', text);
        return;
      case 'again':
        again += text;
    }
  };
  const hasAsked = (): boolean => findings.asks.length > 0;
  const settleHeld = (): void => {
    const text = held;
    held = '';
    channel = isList ? 'musing' : 'said';
    literal(text);
  };
  const thinkHeld = (): void => {
    if (held !== '') speech.say('thinking', held);
    held = '';
  };
  const turnTo = (next: Channel, labelled = false): void => {
    thinkHeld();
    speech.close();
    channel = next;
    isLabelled = labelled;
  };
  const compareAnswers = (other: string): void => {
    const answer = findings.answer?.join('').trim();
    if (answer !== other.trim()) findings.conflict ??= 'It has two different answers.';
  };
  const giveAnswer = (answer: string, said: string | undefined): void => {
    if (findings.answer !== undefined) {
      compareAnswers(answer);
      return;
    }
    if (!answer.startsWith(said ?? '')) {
      findings.conflict ??= 'The answer can be read in two ways.';
      return;
    }
    findings.answer = [answer];
    if (!hasAsked()) speech.say('text', answer.slice(said?.length ?? 0));
  };
  return {
    speech,
    get channel() {
      return channel;
    },
    get isLabelled() {
      return isLabelled;
    },
    get isAtStart() {
      return channel === 'open' && held === '';
    },
    literal,
    thinkHeld,
    turnTo,
    followAction: () => {
      speech.close();
      if (channel !== 'again') channel = 'thought';
      isLabelled = false;
    },
    giveAnswer,
    end: () => {
      if (channel === 'again') compareAnswers(again);
      if (held === '') return;
      findings.prose.push(held);
      speech.say('text', held);
    },
  };
};
