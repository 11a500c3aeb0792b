import type { ModelChunk } from 'millrace';
import type { ParseResult } from './parse-result.js';
import { createRepetition } from './repetition.js';

export type Channel =
  /** Not decided yet: text is held back. */
  | 'undecided'
  /** The answer, as too much text arrived to hold it back. If an action follows, it is taken back and a thought. */
  | 'prose'
  | 'thought'
  | 'answer'
  | 'repeated';

export type OutputChannel = ReturnType<typeof createOutputChannel>;

export interface OutputChannelInit {
  readonly result: ParseResult;
  readonly maxHeld: number;
  /** Tools may be used: an answer next to an action does not count. */
  readonly mayAct: boolean;
  readonly emit: (chunk: ModelChunk) => void;
  readonly mayRetract: () => boolean;
}

export const createOutputChannel = ({
  result,
  maxHeld,
  mayAct,
  emit,
  mayRetract,
}: OutputChannelInit) => {
  const emitter: Emitter = createEmitter((chunk) => {
    if (chunk.type === 'thinking') result.hasThought = true;
    emit(chunk);
  });
  let channel: Channel = 'undecided';
  let isLabelled = false;
  let held = '';
  let followsThought = false;
  let repeated = '';
  let repeatedLabel: string | undefined;
  let repetition = createRepetition([]);

  const addText = (text: string): void => {
    switch (channel) {
      case 'undecided':
        hold(text);
        if (held.length >= maxHeld) settleHeld();
        return;
      case 'prose':
        result.prose.push(text);
        emitter.write('text', text);
        return;
      case 'thought':
        emitter.write('thinking', text);
        return;
      case 'answer':
        result.answer?.push(text);
        if (!hasToolCalls()) emitter.write('text', text);
        return;
      case 'repeated':
        repeated += text;
        if (!repetition.push(text) && repeatedLabel !== undefined) continueAnswer(repeatedLabel);
    }
  };
  const hold = (text: string): void => {
    const begin = held === '' || followsThought ? text.trimStart() : text;
    if (begin === '') return;
    held += held !== '' && followsThought ? `\n\n${begin}` : begin;
    followsThought = false;
  };
  const hasToolCalls = (): boolean => mayAct && result.calls.length > 0;
  const settleHeld = (): void => {
    const text = held;
    held = '';
    channel = 'prose';
    addText(text);
  };
  const emitHeldAsThought = (): void => {
    if (held !== '') emitter.write('thinking', held);
    held = '';
  };
  const reclassifyAsThought = (): void => {
    emitHeldAsThought();
    if (channel !== 'prose') return;
    retract();
    result.prose.length = 0;
  };
  const retract = (): void => {
    if (mayRetract()) emitter.retract();
  };
  let previewFrom = 0;
  /** The text that follows may have to be dropped. */
  const beginPreview = (): void => {
    if (channel === 'undecided') settleHeld();
    previewFrom = result.prose.length;
    emitter.beginPreview();
  };
  const dropPreview = (): void => {
    result.prose.length = Math.min(result.prose.length, previewFrom);
    emitter.dropPreview();
    reclassifyAsThought();
  };
  const switchTo = (next: Channel, labelled = false): void => {
    emitHeldAsThought();
    emitter.close();
    channel = next;
    isLabelled = labelled;
    if (channel === 'repeated') repetition = createRepetition(result.answer ?? []);
  };
  const compareAnswers = (other: string): void => {
    const answer = result.answer?.join('').trim();
    if (answer !== other.trim()) result.conflict ??= 'It has two different answers.';
  };
  const settleRepeated = (): void => {
    if (repeatedLabel === undefined) compareAnswers(repeated);
    else if (result.answer?.join('').trim() !== repeated.trim()) continueAnswer(repeatedLabel);
  };
  /** The label and the text after it were part of the answer. */
  const continueAnswer = (label: string): void => {
    const rest = `${label}${repeated}`;
    repeated = '';
    repeatedLabel = undefined;
    channel = 'answer';
    addText(rest);
  };
  const giveAnswer = (answer: string, emitted: string | undefined): void => {
    if (result.answer !== undefined) {
      compareAnswers(answer);
      return;
    }
    if (!answer.startsWith(emitted ?? '')) {
      result.conflict ??= 'The answer is ambiguous.';
      return;
    }
    result.answer = [answer];
    if (emitted === undefined && !hasToolCalls()) reclassifyAsThought();
    if (!hasToolCalls()) emitter.write('text', answer.slice(emitted?.length ?? 0));
  };
  return {
    emitter,
    get channel() {
      return channel;
    },
    get isLabelled() {
      return isLabelled;
    },
    get isAtStart() {
      return channel === 'undecided' && held === '';
    },
    addText,
    reclassifyAsThought,
    retract,
    /** A thought in tags follows. Text before it may still be the answer. */
    beginThought: () => {
      emitter.close();
      held = held.trimEnd();
      followsThought = true;
    },
    /** Whether text can be taken back. */
    get mayRetract() {
      return mayRetract() && emitter.mayRetract;
    },
    beginPreview,
    dropPreview,
    switchTo,
    /** The following text belongs to the answer, unless it repeats it, perhaps more than once. */
    addRepeatedAnswer: (label: string) => {
      if (channel === 'repeated' && !repetition.isWhole) {
        repeated += label;
        repetition.push(label);
        return;
      }
      if (channel !== 'repeated' || repeatedLabel !== undefined) {
        repeatedLabel = `${repeatedLabel ?? ''}${repeated}${label}`;
      }
      channel = 'repeated';
      repeated = '';
      repetition = createRepetition(result.answer ?? []);
    },
    followAction: () => {
      emitter.close();
      if (channel !== 'repeated') channel = 'thought';
      isLabelled = false;
    },
    giveAnswer,
    end: () => {
      if (channel === 'repeated') settleRepeated();
      if (held === '') return;
      result.prose.push(held);
      emitter.write('text', held);
    },
  };
};

/** Emits thoughts and text in segments, trimmed at both ends. */
export type Emitter = ReturnType<typeof createEmitter>;

interface Piece {
  readonly type: 'text' | 'thinking';
  readonly text: string;
}

/** Each one emits everything again. */
const maxRetractions = 3;

const createEmitter = (emit: (chunk: ModelChunk) => void) => {
  const { trim, close } = createTrimmer();
  let last: Piece['type'] | undefined;
  let hasText = false;
  let retractions = 0;
  let emitted: Piece[] = [];

  let previewFrom = 0;
  return {
    get mayRetract() {
      return retractions < maxRetractions;
    },
    get count() {
      return emitted.length;
    },
    /** Takes back the text after so many pieces. */
    takeBack: (count: number) => {
      retractions += 1;
      emit({ type: 'restart', why: 'The answer has another form.', isSameRequest: true });
      emitted = emitted.filter(({ type }, index) => index < count || type === 'thinking');
      hasText = emitted.some(({ type }) => type === 'text');
      last = emitted.at(-1)?.type;
      emitted.forEach(emit);
      close();
    },
    beginPreview: () => {
      previewFrom = emitted.length;
    },
    /** Leaves the preview out when the text is taken back. */
    dropPreview: () => {
      emitted = emitted.slice(0, previewFrom);
    },
    write: (type: Piece['type'], written: string) => {
      const { text, isFirst } = trim(type, written);
      if (text === '') return;
      const gap = isFirst && (last === type || (type === 'text' && hasText)) ? '\n\n' : '';
      const chunk = { type, text: `${gap}${text}` };
      emitted.push(chunk);
      hasText ||= type === 'text';
      emit(chunk);
      last = type;
    },
    close,
    retract: () => {
      if (!hasText || retractions === maxRetractions) return;
      retractions += 1;
      hasText = false;
      emit({ type: 'restart', why: 'The text was a thought.', isSameRequest: true });
      emitted = asThought(emitted);
      emitted.forEach(emit);
      close();
      last = 'thinking';
    },
  };
};

const asThought = (pieces: readonly Piece[]): Piece[] => {
  const thought = pieces.map(({ type, text }, index) => {
    const before = pieces[index - 1]?.type ?? type;
    return before === type ? text : `\n\n${text}`;
  });
  return thought.length === 0 ? [] : [{ type: 'thinking', text: thought.join('') }];
};

/** Trims segments: leaves out the space at their starts, and that at their ends. */
const createTrimmer = () => {
  let current: Piece['type'] | undefined;
  let space = '';
  let isFresh = true;

  const close = (): void => {
    current = undefined;
    space = '';
    isFresh = true;
  };
  return {
    /** Ends the segment. */
    close,
    /** Returns the part of a piece of text to emit, and whether that is the first of its segment. */
    trim: (type: Piece['type'], piece: string) => {
      if (type !== current) close();
      current = type;
      const begin = isFresh ? piece.trimStart() : piece;
      const body = begin.trimEnd();
      if (body === '') {
        space += begin;
        return { text: '', isFirst: isFresh };
      }
      const trimmed = { text: `${space}${body}`, isFirst: isFresh };
      space = begin.slice(body.length);
      isFresh = false;
      return trimmed;
    },
  };
};
