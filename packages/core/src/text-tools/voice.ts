import type { ModelChunk } from '../model.js';
import type { Findings } from './findings.js';
import { createSpeech, type Speech } from './speech.js';

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
  /** All that has been said turns out to be a thought. */
  readonly retract: () => void;
  /** The answer has the label of one once more: what follows is a part of it, unless it says the same again. */
  answerAgain(label: string): void;
  /** Text counts as something else from here on. */
  turnTo(next: Channel, isLabelled?: boolean): void;
  /** Text behind an action is a thought. */
  followAction(): void;
  /** Takes an answer that JSON gives, and of which this has been said already. */
  giveAnswer(answer: string, said: string | undefined): void;
  /** What is still held back is the answer. */
  end(): void;
}

export interface VoiceInit {
  readonly findings: Findings;
  /** An action is a list: prose before it is a thought. */
  readonly isList: boolean;
  /** Characters of prose that are held back until it is known what they are. */
  readonly maxHeld: number;
  /** Tools may be used: an answer beside an action is none. */
  readonly mayAct: boolean;
  readonly emit: (chunk: ModelChunk) => void;
  readonly mayRetract: () => boolean;
}

export const createVoice = ({
  findings,
  isList,
  maxHeld,
  mayAct,
  emit,
  mayRetract,
}: VoiceInit): Voice => {
  const speech = createSpeech((chunk) => {
    if (chunk.type === 'thinking') findings.hasThought = true;
    emit(chunk);
  });
  let channel: Channel = 'open';
  let isLabelled = false;
  let held = '';
  let again = '';
  let labelOfAgain: string | undefined;

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
  const hasAsked = (): boolean => mayAct && findings.asks.length > 0;
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
  const settleAgain = (): void => {
    if (labelOfAgain === undefined) {
      compareAnswers(again);
      return;
    }
    if (findings.answer?.join('').trim() === again.trim()) return;
    const rest = `${labelOfAgain}${again}`;
    findings.answer?.push(rest);
    if (!hasAsked()) speech.say('text', rest);
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
    retract: () => {
      if (mayRetract()) speech.retract();
    },
    turnTo,
    answerAgain: (label) => {
      if (channel === 'again') {
        again += label;
        return;
      }
      channel = 'again';
      labelOfAgain = label;
    },
    followAction: () => {
      speech.close();
      if (channel !== 'again') channel = 'thought';
      isLabelled = false;
    },
    giveAnswer,
    end: () => {
      if (channel === 'again') settleAgain();
      if (held === '') return;
      findings.prose.push(held);
      speech.say('text', held);
    },
  };
};
