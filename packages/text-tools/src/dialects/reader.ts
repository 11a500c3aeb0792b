import type { JsonSchema, ModelChunk, ToolDeclaration } from 'millrace';
import { createActionStates } from './action-states.js';
import type { ParserState, Found, ActionContext, State } from './parser-state.js';
import type { Dialect } from './dialects.js';
import { createFenceMarks } from './fence-marks.js';
import {
  actionInText,
  createParseResult,
  type ParseResult,
  hasToolCall,
  emptyReading,
} from './parse-result.js';
import { createJsonStates } from './json-states.js';
import { createListLabels } from './list-labels.js';
import type { Label, LabelWords, Mark, Tag } from './scanner.js';
import {
  invisibleStart,
  lookAhead,
  jsonAt,
  labelAt,
  labelWords,
  maxPeek,
  repeatedLabel,
  tagAt,
} from './scanner.js';
import { createCursor, takeRun } from '../cursor.js';
import { createEnding } from './ending.js';
import { type ToolTable, toolTable } from './read-entry.js';
import { createOutputChannel } from './output-channel.js';
import { createThoughtStates } from './thought-states.js';
import { createUnwrapper } from '../unwrap.js';

export interface ReaderInit {
  readonly dialect: Pick<Dialect, 'labels' | 'words' | 'bareJson' | 'isList' | 'completions'>;
  readonly tools: readonly ToolDeclaration[];
  readonly mayAct: boolean;
  /** Whether only tagged thoughts are separated from the answer, as the conversation has no tools. */
  readonly isPlain?: boolean;
  /** Whether the text is what marks around a whole reply contained. */
  readonly isWhole?: boolean;
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
  isWhole = false,
  emit,
  mayRetract,
}: ReaderInit) => {
  const result = createParseResult();
  const cursor = createCursor();
  const ending = createEnding();
  const output = createOutputChannel({
    result,
    maxHeld: isPlain ? 0 : 256,
    mayAct: mayAct && tools.length > 0,
    emit,
    mayRetract,
  });
  let isOver = false;
  /** Whether nothing but space follows the opening mark of an answer so far. */
  let isMarkedStart = false;

  const prose: State = () => {
    if (cursor.left === 0) return false;
    const found =
      parser.code !== undefined
        ? fences.endCode(parser.code)
        : output.channel === 'answer' || output.channel === 'repeated'
          ? markInAnswer()
          : mark();
    if (found === 'more') return false;
    if (found === 'found') return true;
    const isLiteral =
      parser.code !== undefined || output.channel === 'answer' || output.channel === 'repeated';
    const run = takeRun(
      cursor,
      parser.code !== undefined ? /\n/g : isLiteral || isPlain ? /[\n<[]/g : /[\n<{[]/g,
    );
    parser.addText(run);
    return true;
  };
  const markInAnswer = (): Found => {
    if (isMarkedStart) {
      const length = repeatedLabel(cursor.peek(maxPeek), words, cursor.isEnd);
      if (length === 'more') return 'more';
      isMarkedStart = false;
      if (length > 0) {
        cursor.take(length);
        return 'found';
      }
    }
    if (cursor.isInQuote) return undefined;
    if (!cursor.isLineStart) {
      const tag = tagAt(cursor.peek(2 * maxPeek), cursor.isEnd);
      if (tag === 'more') return 'more';
      return tag?.type.includes('answer') ? takeMark(tag) : undefined;
    }
    const next = lookAhead(cursor, wordsInAnswer);
    if (next === 'more') return 'more';
    const { label, tag, fence } = next;
    if (fence !== undefined) return fences.inAnswer(fence);
    if (label?.type === 'answer') {
      output.addRepeatedAnswer(cursor.take(label.length));
      return 'found';
    }
    if (label !== undefined) {
      cursor.mark();
      cursor.take(label.length);
      return actions.begin({ kind: 'answer' });
    }
    if (tag?.type === 'unthink') return thoughts.endDraft(tag);
    if (tag?.type === 'answer' || tag?.type === 'unanswer') return takeMark(tag);
    if (tag === undefined || tag.type === 'think') return undefined;
    cursor.mark();
    return openTag(tag, 'answer');
  };
  /** Text after a marked answer is not part of it. */
  const takeMark = ({ type, length }: Mark<Tag>): 'found' => {
    cursor.take(length);
    isMarkedStart = type === 'answer';
    if (type === 'unanswer' && output.channel === 'answer') output.switchTo('thought');
    return 'found';
  };
  const words = labelWords(dialect.labels, dialect.words);
  const wordsInAnswer = words.filter(([, label]) => label === 'action' || label === 'answer');

  const mark = (): Found => {
    const text = cursor.peek(2 * maxPeek);
    if (isPlain) return thoughtTag(text);
    // Indented after prose, it is code.
    if (cursor.isInQuote || (cursor.isIndented && isPreamble())) return undefined;
    if (cursor.isLineStart) {
      const followsThought = output.channel === 'thought' && output.isLabelled;
      const label = labelAt(text, words, cursor.isEnd, followsThought);
      if (label === 'more') return 'more';
      if (label !== undefined && takeLabel(label)) return 'found';
      const fence = fences.open();
      if (fence !== undefined) return fence;
      const named = namedArguments(text);
      if (named !== undefined) return named;
    }
    // In backticks, it is only mentioned.
    const tag = cursor.isInCode || cursor.last === '`' ? undefined : tagAt(text, cursor.isEnd);
    if (tag === 'more') return 'more';
    if (tag !== undefined) return takeTag(tag);
    return bareJson(0, undefined);
  };

  const thoughtTag = (text: string): Found => {
    const tag = tagAt(text, cursor.isEnd);
    if (tag === 'more') return 'more';
    return tag !== undefined && /think|answer/.test(tag.type) ? takeTag(tag) : undefined;
  };
  const takeLabel = ({ type, length }: Mark<Label>): boolean => {
    switch (type) {
      case 'observation':
        isOver = result.calls.length > 0;
        return isOver;
      case 'thought':
        cursor.take(length);
        output.switchTo('thought', true);
        return true;
      case 'answer':
        cursor.take(length);
        output.reclassifyAsThought();
        output.switchTo(result.answer === undefined ? 'answer' : 'repeated');
        result.answer ??= [];
        isMarkedStart = true;
        return true;
      case 'action':
      case 'input':
        parser.isEmbedded = isPreamble();
        if (parser.isEmbedded) result.hasPreamble = true;
        cursor.take(length);
        output.switchTo(isProse() ? output.channel : 'thought');
        cursor.mark();
        actions.begin({ kind: 'own' });
        return true;
    }
  };

  const isProse = (): boolean => output.channel === 'prose';
  const isPreamble = (): boolean =>
    isProse() || (output.channel === 'undecided' && !output.isAtStart);
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
        cursor.mark();
        return openTag(tag, 'own');
    }
  };
  /** A marker of native tool calls. In prose, it counts only if an action can follow. */
  const openTag = (tag: Mark<Tag>, kind: ActionContext['kind']): Found => {
    const { type, length, name } = tag;
    if (type === 'close') {
      if (!hasToolCall(result)) return undefined;
      cursor.take(length);
      return 'found';
    }
    if (type === 'call' && !cursor.isLineStart) {
      const after = cursor.peek(maxPeek, length).trimStart();
      if (after === '' && cursor.left < length + maxPeek && !cursor.isEnd) return 'more';
      if (!/^[{[<]/.test(after)) return undefined;
    }
    parser.isEmbedded = !cursor.isLineStart || isPreamble() || kind === 'answer';
    if (kind === 'own') output.switchTo(isProse() ? output.channel : 'thought');
    const isFunction = type === 'function';
    if (kind === 'own' && isFunction) cursor.mark();
    cursor.take(length);
    if (kind === 'own' && !isFunction) cursor.mark();
    if (!isFunction || name === undefined) return actions.begin({ kind });
    parser.context = { kind, name };
    parser.state = actions.functionBody;
    return 'found';
  };

  /** `name[ARGS]{…}`, as one family of models writes it. */
  const namedArguments = (text: string): Found => {
    for (const name of parser.needs.tools.keys()) {
      const lead = `${name}[ARGS]`;
      if (text.startsWith(lead)) {
        parser.isEmbedded = isPreamble();
        output.switchTo(output.channel === 'undecided' ? 'thought' : output.channel);
        cursor.take(lead.length);
        cursor.mark();
        parser.context = { kind: 'own', name };
        parser.state = actions.input;
        return 'found';
      }
      if (!cursor.isEnd && lead.startsWith(text)) return 'more';
    }
    return undefined;
  };

  const bareJson = (offset: number, fence: string | undefined, isWholeFence = true): Found => {
    const text = cursor.peek(maxPeek, offset);
    if (text === '') return undefined;
    const isFirst = output.isAtStart;
    if (dialect.bareJson === 'whole' && isFirst && isWholeFence) {
      if (/^\[\s*$/.test(text) && text.length < maxPeek && !cursor.isEnd) return 'more';
      if (/^(?:\{|\[\s*[{\]])/.test(text)) return captureAt(offset, 'own', fence);
    }
    const isLabelledLine = output.isLabelled && cursor.isLineStart && output.channel === 'thought';
    if (outputSchema !== undefined && isLabelledLine && /^\{\s*"/.test(text)) {
      return captureAt(offset, 'own', fence);
    }
    const found = jsonAt(text, cursor.isEnd);
    if (found !== 'json') return found;
    const isOwn = isFirst || isLabelledLine;
    return captureAt(offset, isOwn && dialect.bareJson !== 'none' ? 'own' : 'prose', fence);
  };
  const captureAt = (
    offset: number,
    kind: ActionContext['kind'],
    fence: string | undefined,
  ): 'found' => {
    const { channel } = output;
    parser.isEmbedded = false;
    if (kind === 'own') output.switchTo(channel === 'undecided' ? 'thought' : channel);
    cursor.mark();
    cursor.take(offset);
    json.begin(fence === undefined ? { kind } : { kind, fence }, channel);
    return 'found';
  };
  const parser: ParserState = {
    dialect,
    words,
    needs: { tools: toolTable(tools), completions: dialect.completions, outputSchema },
    result,
    cursor,
    output,
    state: prose,
    context: { kind: 'own' },
    last: emptyReading,
    code: undefined,
    openFences: 0,
    isTemplate: false,
    followsTemplate: false,
    isEmbedded: false,
    followsEmbedded: false,
    input: () => false,
    addText: (text) => {
      const isText = text.trim() !== '';
      const mayBeExample = parser.followsTemplate || parser.followsEmbedded;
      if (mayBeExample && isText) result.conflict ??= actionInText;
      // After a labelled thought, the action is the next step, which is refused. A list has all actions of a step.
      const isNextStep = output.isLabelled && !dialect.isList;
      if (result.calls.length > 0 && isText && !isNextStep) result.hasRemark = true;
      output.addText(text);
    },
    toProse: () => {
      parser.state = prose;
    },
  };
  const fences = createFenceMarks(parser, { bareJson, isPreamble });
  const thoughts = createThoughtStates(parser);
  const json = createJsonStates(parser);
  const actions = createActionStates(parser, json);
  const run = (): void => {
    while (!isOver && parser.state());
  };
  let hasStarted = false;
  const read = (text: string): void => {
    cursor.push(text);
    run();
  };
  const hasMarks = !isWhole && !isPlain && tools.length > 0;
  const lists = hasMarks ? createListLabels({ words, push: read }) : undefined;
  const readLines = lists?.push ?? read;
  const unwrapper = !hasMarks
    ? undefined
    : createUnwrapper({
        push: readLines,
        mayBeCall: (text) => callStart(text, words, parser.needs.tools),
        isCall: (text) => isWholeCall(text, { dialect, tools, outputSchema, mayAct }),
        onQuoted: () => {
          result.conflict ??= actionInText;
        },
      });
  const push = unwrapper?.push ?? readLines;
  return {
    push: (piece: string) => {
      if (isOver || ending.isOver || piece === '') return;
      const text = hasStarted ? piece : piece.replace(invisibleStart, '');
      hasStarted ||= text !== '';
      if (text !== '') push(ending.push(text));
    },
    end: (): ParseResult => {
      if (!isOver) push(ending.end());
      unwrapper?.end();
      lists?.end();
      cursor.end();
      run();
      output.end();
      return result;
    },
    /** Set if the model has started to invent text: a tool result, or the next turn. */
    get isOver() {
      return isOver ? 'observation' : ending.isOver ? 'turn' : undefined;
    },
    get unread() {
      return cursor.left + ending.held + (unwrapper?.held ?? 0) + (lists?.held ?? 0);
    },
  };
};

/** Whether the text starts as an action does. */
const callStart = (text: string, words: LabelWords, tools: ToolTable): boolean | 'more' => {
  const ofCalls = words.filter(([, type]) => type === 'action' || type === 'answer');
  const looks = [labelAt(text, ofCalls, false), jsonAt(text, false), tagAt(text, false)];
  const isCall = looks.some((found) => found !== undefined && found !== 'more');
  if (isCall || /^\{\s*\\"/.test(text)) return true;
  const names = [...tools.keys()];
  if (names.some((name) => text.startsWith(name) && /^\s*[([{]/.test(text.slice(name.length)))) {
    return true;
  }
  const mayBeName = names.some((name) => name.startsWith(text) || text.trimEnd() === name);
  return looks.includes('more') || mayBeName || /^\{\s*\\?$/.test(text) ? 'more' : false;
};

const isWholeCall = (text: string, init: Omit<ReaderInit, 'emit' | 'mayRetract'>): boolean => {
  const reader = createReader({
    ...init,
    isWhole: true,
    emit: () => undefined,
    mayRetract: () => false,
  });
  reader.push(text);
  const { calls, fault, conflict, answer, prose } = reader.end();
  if (fault !== undefined || conflict !== undefined || prose.join('').trim() !== '') return false;
  const names = new Set(init.tools.map(({ name }) => name));
  if (calls.length === 0) return answer !== undefined;
  // The call must be the last part.
  const isEnd = /[}\])>]$/.test(text.trim()) || [...names].some((it) => text.trim().endsWith(it));
  return isEnd && answer === undefined && calls.every(({ name }) => names.has(name));
};
