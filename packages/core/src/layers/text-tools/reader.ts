import type { ModelChunk, ToolDeclaration } from '../../models/model.js';
import type { JsonSchema } from '../../values/schema.js';
import { createActionStates } from './action-states.js';
import type { Desk, Found, Place, State } from './desk.js';
import type { Dialect } from './dialects.js';
import { createFenceMarks } from './fence-marks.js';
import { amongText, createFindings, type Findings, forget, hasActed, nothing } from './findings.js';
import { createJsonStates } from './json-states.js';
import type { Label, Mark, Tag } from './peek.js';
import { ahead, jsonAt, labelAt, labelWords, reach, tagAt } from './peek.js';
import { createTape, takeRun } from './tape.js';
import { toolTable } from './read-entry.js';
import { createVoice } from './voice.js';

export interface ReaderInit {
  readonly dialect: Pick<Dialect, 'labels' | 'words' | 'bareJson' | 'isList' | 'completions'>;
  readonly tools: readonly ToolDeclaration[];
  readonly mayAct: boolean;
  /** Only thoughts in tags are told from the answer: tools have not been spoken of. */
  readonly isPlain?: boolean;
  readonly outputSchema?: JsonSchema | undefined;
  readonly emit: (chunk: ModelChunk) => void;
  readonly mayRetract: () => boolean;
}

export type Reader = ReturnType<typeof createReader>;

export const createReader = ({
  dialect,
  tools,
  outputSchema,
  mayAct,
  isPlain = false,
  emit,
  mayRetract,
}: ReaderInit) => {
  const findings = createFindings();
  const tape = createTape();
  const ending = createEnding();
  const voice = createVoice({
    findings,
    isList: dialect.isList && !isPlain,
    maxHeld: isPlain ? 0 : 256,
    mayAct: mayAct && tools.length > 0,
    emit,
    mayRetract,
  });
  let isOver = false;

  const prose: State = () => {
    if (tape.left === 0) return false;
    const found =
      desk.code !== undefined
        ? fences.endCode(desk.code)
        : voice.channel === 'answer' || voice.channel === 'again'
          ? markInAnswer()
          : mark();
    if (found === 'more') return false;
    if (found === 'found') return true;
    const isLiteral =
      desk.code !== undefined || voice.channel === 'answer' || voice.channel === 'again';
    const run = takeRun(
      tape,
      desk.code !== undefined ? /\n/g : isLiteral || isPlain ? /[\n<[]/g : /[\n<{[]/g,
    );
    if (desk.isBehindTemplate && run.trim() !== '') findings.conflict ??= amongText;
    voice.literal(run);
    return true;
  };
  const markInAnswer = (): Found => {
    if (!tape.isLineStart) {
      const tag = tagAt(tape.peek(2 * reach), tape.isEnd);
      if (tag === 'more') return 'more';
      return tag?.type.includes('answer') ? takeMark(tag) : undefined;
    }
    const next = ahead(tape, wordsInAnswer);
    if (next === 'more') return 'more';
    const { label, tag, fence } = next;
    if (fence !== undefined) return fences.inAnswer(fence);
    if (label?.type === 'answer') {
      voice.answerAgain(tape.take(label.length));
      return 'found';
    }
    if (label !== undefined) {
      tape.mark();
      tape.take(label.length);
      return actions.begin({ kind: 'answer' });
    }
    if (tag?.type === 'unthink') return thoughts.endDraft(tag);
    if (tag?.type === 'answer' || tag?.type === 'unanswer') return takeMark(tag);
    if (tag === undefined || tag.type === 'think') return undefined;
    tape.mark();
    return openTag(tag, 'answer');
  };
  /** What follows an answer in marks is no part of it. */
  const takeMark = ({ type, length }: Mark<Tag>): 'found' => {
    tape.take(length);
    if (type === 'unanswer' && voice.channel === 'answer') voice.turnTo('thought');
    return 'found';
  };
  const words = labelWords(dialect.labels, dialect.words);
  const wordsInAnswer = words.filter(([, label]) => label === 'action' || label === 'answer');

  const mark = (): Found => {
    const text = tape.peek(2 * reach);
    if (isPlain) return thoughtTag(text);
    if (tape.isLineStart) {
      const isBehindThought = voice.channel === 'thought' && voice.isLabelled;
      const label = labelAt(text, words, tape.isEnd, isBehindThought);
      if (label === 'more') return 'more';
      if (label !== undefined && takeLabel(label)) return 'found';
      const fence = fences.open();
      if (fence !== undefined) return fence;
      const named = namedArguments(text);
      if (named !== undefined) return named;
    }
    // In backticks it is only mentioned.
    const tag = tape.last === '`' ? undefined : tagAt(text, tape.isEnd);
    if (tag === 'more') return 'more';
    if (tag !== undefined) return takeTag(tag);
    return bareJson(0, undefined);
  };

  const thoughtTag = (text: string): Found => {
    const tag = tagAt(text, tape.isEnd);
    if (tag === 'more') return 'more';
    return tag !== undefined && /think|answer/.test(tag.type) ? takeTag(tag) : undefined;
  };
  const takeLabel = ({ type, length }: Mark<Label>): boolean => {
    switch (type) {
      case 'observation':
        isOver = findings.asks.length > 0;
        return isOver;
      case 'thought':
        tape.take(length);
        voice.turnTo('thought', true);
        return true;
      case 'answer':
        tape.take(length);
        voice.thinkBefore();
        voice.turnTo(findings.answer === undefined ? 'answer' : 'again');
        findings.answer ??= [];
        return true;
      case 'action':
      case 'input':
        if (isLead()) findings.hasLead = true;
        tape.take(length);
        voice.turnTo(isSaid() ? voice.channel : 'thought');
        tape.mark();
        actions.begin({ kind: 'own' });
        return true;
    }
  };

  const isSaid = (): boolean => voice.channel === 'said' || voice.channel === 'musing';
  const isLead = (): boolean => isSaid() || (voice.channel === 'open' && !voice.isAtStart);
  const takeTag = (tag: Mark<Tag>): Found => {
    switch (tag.type) {
      case 'think':
        return thoughts.begin(tag);
      case 'unthink':
        return thoughts.end(tag);
      case 'answer':
        takeLabel({ type: 'answer', length: tag.length });
        return 'found';
      case 'unanswer':
        return takeMark(tag);
      default:
        tape.mark();
        return openTag(tag, 'own');
    }
  };
  /** A mark of native tool use. In prose it is one only where an action can follow. */
  const openTag = (tag: Mark<Tag>, kind: Place['kind']): Found => {
    const { type, length, name } = tag;
    if (type === 'close') {
      if (!hasActed(findings)) return undefined;
      tape.take(length);
      return 'found';
    }
    if (type === 'call' && !tape.isLineStart) {
      const behind = tape.peek(reach, length).trimStart();
      if (behind === '' && tape.left < length + reach && !tape.isEnd) return 'more';
      if (!/^[{[<]/.test(behind)) return undefined;
    }
    if (kind === 'own') voice.turnTo(isSaid() ? voice.channel : 'thought');
    tape.take(length);
    if (kind === 'own') tape.mark();
    if (type !== 'function' || name === undefined) return actions.begin({ kind });
    desk.place = { kind, name };
    desk.state = actions.functionBody;
    return 'found';
  };

  /** `name[ARGS]{…}`, as one family of models writes it. */
  const namedArguments = (text: string): Found => {
    for (const name of desk.needs.tools.keys()) {
      const lead = `${name}[ARGS]`;
      if (text.startsWith(lead)) {
        voice.turnTo(voice.channel === 'open' ? 'thought' : voice.channel);
        tape.take(lead.length);
        tape.mark();
        desk.place = { kind: 'own', name };
        desk.state = actions.input;
        return 'found';
      }
      if (!tape.isEnd && lead.startsWith(text)) return 'more';
    }
    return undefined;
  };

  const bareJson = (offset: number, fence: string | undefined, isWhole = true): Found => {
    const text = tape.peek(reach, offset);
    if (text === '') return undefined;
    const isFirst = voice.isAtStart;
    if (dialect.bareJson === 'whole' && isFirst && isWhole) {
      if (/^\[\s*$/.test(text) && text.length < reach && !tape.isEnd) return 'more';
      if (/^(?:\{|\[\s*[{\]])/.test(text)) return captureAt(offset, 'own', fence);
    }
    const isLabelledLine = voice.isLabelled && tape.isLineStart && voice.channel === 'thought';
    if (outputSchema !== undefined && isLabelledLine && /^\{\s*"/.test(text)) {
      return captureAt(offset, 'own', fence);
    }
    const found = jsonAt(text, tape.isEnd);
    if (found !== 'json') return found;
    const isOwn = isFirst || isLabelledLine;
    return captureAt(offset, isOwn && dialect.bareJson !== 'none' ? 'own' : 'prose', fence);
  };
  const captureAt = (offset: number, kind: Place['kind'], fence: string | undefined): 'found' => {
    const { channel } = voice;
    if (kind === 'own') voice.turnTo(channel === 'open' ? 'thought' : channel);
    tape.mark();
    tape.take(offset);
    json.begin(fence === undefined ? { kind } : { kind, fence }, channel);
    return 'found';
  };
  const desk: Desk = {
    dialect,
    words,
    needs: { tools: toolTable(tools), completions: dialect.completions, outputSchema },
    findings,
    tape,
    voice,
    state: prose,
    place: { kind: 'own' },
    last: nothing,
    code: undefined,
    openFences: 0,
    isTemplate: false,
    isBehindTemplate: false,
    input: () => false,
    toProse: () => {
      desk.state = prose;
    },
  };
  const fences = createFenceMarks(desk, { bareJson, isLead });
  const thoughts = createThoughtStates(desk);
  const json = createJsonStates(desk);
  const actions = createActionStates(desk, json);
  const run = (): void => {
    while (!isOver && desk.state());
  };
  let isBegun = false;
  return {
    push: (piece: string) => {
      if (isOver || ending.isOver || piece === '') return;
      tape.push(ending.push(isBegun ? piece : piece.replace(/^\uFEFF/, '')));
      isBegun = true;
      run();
    },
    end: (): Findings => {
      if (!isOver) tape.push(ending.end());
      tape.end();
      run();
      voice.end();
      return findings;
    },
    /** What the model has begun to make up: what a tool says, or what comes after its turn. */
    get isOver() {
      return isOver ? 'observation' : ending.isOver ? 'turn' : undefined;
    },
    get unread() {
      return tape.left + ending.held;
    },
  };
};

/** Marks with which models end their turn: they, and what is written behind them, are taken off the end. */
const ends = ['<|im_end|>', '<|eot_id|>', '<|end|>', '<end_of_turn>', '</s>'];
const begins = ['<|im_start|>', '<|start_header_id|>', '<start_of_turn>'];
const maxHeld = 120;

const nextTurn =
  /<(?:\|im_end\||\|eot_id\||\|end\||end_of_turn)>\s{0,9}<(?:\|im_start\||\|start_header_id\||start_of_turn)>/;

const createEnding = () => {
  let held = '';
  let last = '';
  let hasOpening = false;
  let isOver = false;

  const keep = (text: string): string => {
    let at = text.indexOf('<', Math.max(0, text.length - maxHeld));
    while (at >= 0 && !mayEnd(text.slice(at))) at = text.indexOf('<', at + 1);
    held = at < 0 ? '' : text.slice(at);
    return at < 0 ? text : text.slice(0, at);
  };
  return {
    push: (piece: string) => {
      // `<s>` and `</s>` also strike text out.
      hasOpening ||= (last + piece).includes('<s>');
      last = (last + piece).slice(-2);
      const text = held + piece;
      const turn = nextTurn.exec(text)?.index;
      if (turn === undefined) return keep(text);
      isOver = true;
      held = '';
      return text.slice(0, turn);
    },
    end: () => {
      const isMark = isWhole(held) && !(hasOpening && held.includes('</s>'));
      const rest = isMark ? '' : held;
      held = '';
      return rest;
    },
    get held() {
      return held.length;
    },
    get isOver() {
      return isOver;
    },
  };
};

const behindMarks = (text: string): string => {
  const token = ends.find((it) => text.startsWith(it));
  return token === undefined ? text : behindMarks(text.slice(token.length).trimStart());
};

const isWhole = (text: string): boolean => behindMarks(text) === '';

const mayEnd = (text: string): boolean => {
  const rest = behindMarks(text);
  const isBehind = rest.length < text.length;
  return [...ends, ...(isBehind ? begins : [])].some((it) => it.startsWith(rest));
};

const createThoughtStates = (desk: Desk) => {
  const { findings, tape, voice } = desk;
  let hasTag = false;

  const begin = ({ length }: Mark<Tag>): Found => {
    if (!tape.isLineStart) return undefined;
    hasTag = true;
    tape.take(length);
    voice.thinkHeld();
    voice.speech.close();
    desk.state = thinking;
    return 'found';
  };
  /** The end of a thought that no tag has begun: all before it was one. Within a line it is only mentioned. */
  const end = ({ length }: Mark<Tag>): Found => {
    const behind = tape.peek(reach, length);
    if (!tape.isLineStart && !behind.includes('\n')) {
      if (behind.trim() !== '') return undefined;
      if (behind.length < reach && !tape.isEnd) return 'more';
    }
    if (!tape.isLineStart && !/^[ \t\r]*(?:\n|$)/.test(behind)) return undefined;
    tape.take(length);
    if (hasTag) endThought();
    else endAll();
    return 'found';
  };
  /** The same behind an answer, which was a draft if more follows. */
  const endDraft = ({ length }: Mark<Tag>): Found => {
    if (hasTag) return undefined;
    const behind = tape.peek(reach, length);
    if (behind.trim() === '' && behind.length < reach) {
      if (!tape.isEnd) return 'more';
      tape.take(length);
      return 'found';
    }
    if (!/^[ \t\r]*\n/.test(behind)) return undefined;
    tape.take(length);
    endAll();
    return 'found';
  };
  const endAll = (): void => {
    voice.turnTo('open');
    voice.retract();
    forget(findings);
    tape.isLineStart = true;
  };
  const endThought = (): void => {
    voice.thinkHeld();
    voice.speech.close();
    if (voice.channel === 'thought' && findings.answer === undefined && !hasActed(findings)) {
      voice.turnTo('open');
    }
    tape.isLineStart = true;
  };
  const thinking: State = () => {
    if (tape.left === 0) return false;
    const tag = tagAt(tape.peek(reach), tape.isEnd);
    if (tag === 'more') return false;
    if (tag?.type === 'unthink') {
      tape.take(tag.length);
      endThought();
      desk.toProse();
      return true;
    }
    voice.speech.say('thinking', tape.take(tape.before(/</g, 1)));
    return true;
  };
  return { begin, end, endDraft };
};
