import type { ModelChunk } from '../../models/model.js';
import type { Findings } from './findings.js';

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
export type Voice = ReturnType<typeof createVoice>;

export interface VoiceInit {
  readonly findings: Findings;
  readonly isList: boolean;
  readonly maxHeld: number;
  /** Tools may be used: an answer beside an action is none. */
  readonly mayAct: boolean;
  readonly emit: (chunk: ModelChunk) => void;
  readonly mayRetract: () => boolean;
}

export const createVoice = ({ findings, isList, maxHeld, mayAct, emit, mayRetract }: VoiceInit) => {
  const speech: Speech = createSpeech((chunk) => {
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
  /** All that has been written before an answer is a thought. */
  const thinkBefore = (): void => {
    thinkHeld();
    if (channel !== 'said') return;
    retract();
    findings.prose.length = 0;
  };
  const retract = (): void => {
    if (mayRetract()) speech.retract();
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
    if (said === undefined && !hasAsked()) thinkBefore();
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
    thinkBefore,
    retract,
    turnTo,
    /** What follows is a part of the answer, unless it says the same again. */
    answerAgain: (label: string) => {
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

/** Says thoughts and texts in segments, each without white space at its ends. */
export type Speech = ReturnType<typeof createSpeech>;

/** Each one says all that has been said again. */
const maxRetractions = 3;

const createSpeech = (emit: (chunk: ModelChunk) => void) => {
  let current: 'text' | 'thinking' | undefined;
  let last: 'text' | 'thinking' | undefined;
  let space = '';
  let isFresh = true;
  let hasText = false;
  let retractions = 0;
  let said: { readonly type: 'text' | 'thinking'; readonly text: string }[] = [];

  const close = (): void => {
    current = undefined;
    space = '';
    isFresh = true;
  };
  return {
    say: (type: 'text' | 'thinking', text: string) => {
      if (type !== current) close();
      current = type;
      const begin = isFresh ? text.trimStart() : text;
      if (begin === '') return;
      const body = begin.trimEnd();
      if (body === '') {
        space += begin;
        return;
      }
      const gap = isFresh && last === type ? '\n\n' : '';
      const chunk = { type, text: `${gap}${space}${body}` };
      said.push(chunk);
      hasText ||= type === 'text';
      emit(chunk);
      space = begin.slice(body.length);
      isFresh = false;
      last = type;
    },
    close,
    retract: () => {
      if (!hasText || retractions === maxRetractions) return;
      retractions += 1;
      hasText = false;
      emit({ type: 'restart', why: 'What the model wrote before its answer was a thought.' });
      const thought = said.map(({ type, text }, index) => {
        const before = said[index - 1]?.type ?? type;
        return before === type ? text : `\n\n${text}`;
      });
      said = [{ type: 'thinking', text: thought.join('') }];
      said.forEach(emit);
      close();
      last = 'thinking';
    },
  };
};
