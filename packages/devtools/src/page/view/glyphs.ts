// The shapes of marbles, as RxJS draws them: a circle is a value, a line the end, a cross an error.

export type Shape = 'circle' | 'ring' | 'square' | 'diamond' | 'triangle' | 'cross' | 'line';

const paths: Readonly<Record<Shape, string>> = {
  circle: 'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0',
  ring: 'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0',
  square: 'M-3.8-3.8h7.6v7.6h-7.6z',
  diamond: 'M0-5L5 0L0 5L-5 0z',
  triangle: 'M0-5L5 4H-5z',
  cross: 'M-4-4L4 4M4-4L-4 4',
  line: 'M0-7V7',
};

interface Look {
  readonly shape: Shape;
  /** The class of its colour. */
  readonly tone: string;
  readonly label: string;
}

const looks: Readonly<Record<string, Look>> = {
  text: { shape: 'circle', tone: 'text', label: 'text' },
  thinking: { shape: 'ring', tone: 'thinking', label: 'thinking' },
  toolInput: { shape: 'square', tone: 'tool', label: 'tool arguments' },
  preReasoning: { shape: 'ring', tone: 'quiet', label: 'preReasoning' },
  postReasoning: { shape: 'circle', tone: 'done', label: 'postReasoning' },
  preActing: { shape: 'ring', tone: 'tool', label: 'preActing' },
  actingChunk: { shape: 'circle', tone: 'tool', label: 'progress' },
  postActing: { shape: 'circle', tone: 'done', label: 'result' },
  toolError: { shape: 'cross', tone: 'bad', label: 'tool error' },
  postCall: { shape: 'circle', tone: 'done', label: 'reply' },
  error: { shape: 'cross', tone: 'bad', label: 'error' },
  messageDiscarded: { shape: 'cross', tone: 'warn', label: 'message discarded' },
  modelRetry: { shape: 'triangle', tone: 'warn', label: 'retry' },
  modelFallback: { shape: 'triangle', tone: 'bad', label: 'fallback' },
  modelWaiting: { shape: 'triangle', tone: 'quiet', label: 'model is silent' },
  vetoed: { shape: 'cross', tone: 'warn', label: 'veto' },
  handlerError: { shape: 'cross', tone: 'bad', label: 'handler error' },
  held: { shape: 'square', tone: 'held', label: 'held' },
  released: { shape: 'triangle', tone: 'held', label: 'released' },
  steered: { shape: 'circle', tone: 'user', label: 'steered' },
  preCall: { shape: 'circle', tone: 'user', label: 'preCall' },
  stepReplayed: { shape: 'ring', tone: 'quiet', label: 'step replayed' },
  mixed: { shape: 'circle', tone: 'quiet', label: 'entries' },
  messagesAppended: { shape: 'ring', tone: 'quiet', label: 'messages appended' },
};

const summaryKinds = /^(pre|post)(Summary|Planning)$/u;

/** How marbles of a kind look. Kinds that the page does not know are diamonds. */
export const lookOf = (kind: string): Look =>
  (Object.hasOwn(looks, kind) ? looks[kind] : undefined) ??
  (summaryKinds.test(kind)
    ? { shape: kind.startsWith('pre') ? 'ring' : 'circle', tone: 'done', label: kind }
    : { shape: 'diamond', tone: 'event', label: kind });

export const pathOf = (shape: Shape): string => paths[shape];

/** Kinds of chunks are drawn on their subscription; the first of them in `legend` order. */
export const legend: readonly { readonly kind: string; readonly label: string }[] = [
  { kind: 'text', label: 'text' },
  { kind: 'thinking', label: 'thinking' },
  { kind: 'toolInput', label: 'arguments' },
  { kind: 'preReasoning', label: 'preReasoning' },
  { kind: 'preActing', label: 'preActing' },
  { kind: 'postActing', label: 'result' },
  { kind: 'error', label: 'error' },
  { kind: 'modelRetry', label: 'retry' },
  { kind: 'held', label: 'held' },
  { kind: 'released', label: 'released' },
  { kind: 'custom', label: 'other event' },
];
