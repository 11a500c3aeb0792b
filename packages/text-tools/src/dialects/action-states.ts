import { readParameters } from '../formats/read-calls.js';
import type { ParserState, ActionContext, State } from './parser-state.js';
import type { JsonStates } from './json-states.js';
import {
  lookAhead,
  afterSpace,
  hasMark,
  type FenceLine,
  inputLabelAt,
  maxPeek,
} from './scanner.js';
import { isCompletion, isNone, readNamed, type ReadingContext } from './read-entry.js';
import { emptyReading, unreadable } from './parse-result.js';
import { takeRun } from '../cursor.js';

const maxName = 200;

export const createActionStates = (parser: ParserState, json: JsonStates) => {
  const { result, words, needs, cursor, output } = parser;

  const beginAction = (at: ActionContext): 'found' => {
    parser.context = at;
    parser.last = emptyReading;
    parser.state = action;
    return 'found';
  };
  const labelsHere = (): typeof words => (cursor.isLineStart ? words : []);
  const action = afterSpace(
    cursor,
    () => leaveAction(),
    (text) => {
      const next = lookAhead(cursor, labelsHere());
      if (next === 'more') return false;
      const { fence, tag, label } = next;
      if (fence !== undefined) {
        cursor.take(fence.length);
        return true;
      }
      if (label !== undefined) return leaveAction();
      if (tag?.type === 'function' && tag.name !== undefined) {
        cursor.take(tag.length);
        parser.context = { ...parser.context, name: tag.name };
        parser.state = functionBody;
        return true;
      }
      if (tag?.type === 'call' || tag?.type === 'action') {
        cursor.take(tag.length);
        return true;
      }
      if (tag !== undefined) return leaveAction();
      if (/^`?(?:\[\s*)?$/.test(text) && text.length < maxPeek && !cursor.isEnd) return false;
      const isJson = /^`?(?:\{|\[\s*[{"'\]])/.test(text);
      if (isJson && text.startsWith('`')) cursor.take(1);
      if (isJson) json.begin(parser.context);
      else parser.state = nameLine;
      return true;
    },
  );
  const noAction = (after: string): true => {
    if (output.channel === 'thought' && result.calls.length === 0) output.switchTo('undecided');
    parser.addText(after.replace(/^\s*[`"'(]*(?:none|null|n\/a)[`"').]*\s*(?:\n|$)/i, ''));
    parser.toProse();
    return true;
  };
  const leaveAction = (): true => {
    if (parser.context.kind === 'answer') parser.addText(cursor.taken);
    parser.toProse();
    return true;
  };

  const nameLine: State = () => {
    const length = cursor.lengthUntil(/[\n{(<]|\[ARGS\]|\[CALL_ID\]/g, 0);
    if (length === cursor.left && !cursor.isEnd && length < maxName) return false;
    if (length >= maxName) return collectUnreadable();
    const mark = cursor.peek(1, length);
    if (mark === '[' && cursor.peek(9, length) === '[CALL_ID]') {
      const end = cursor.lengthUntil(/\[ARGS\]|\{/g, length);
      if (end >= 2 * maxName) return collectUnreadable();
      if (end === cursor.left && !cursor.isEnd) return false;
    }
    cursor.cut();
    const name = cleanName(cursor.peek(length), needs);
    if (mark === '{') {
      const isName = isNameLike(name, needs);
      cursor.take(length);
      if (isName) return beginNamedJson(name);
      if (parser.context.kind === 'own') output.emitter.write('thinking', cursor.latest);
      json.begin(parser.context);
      return true;
    }
    if (mark === '[') {
      if (!isNameLike(name, needs)) return collectUnreadable();
      cursor.take(cursor.lengthUntil(/\[ARGS\]|\{/g, length));
      if (cursor.peek(1) === '[') cursor.take('[ARGS]'.length);
      parser.context = { ...parser.context, name };
      parser.state = input;
      return true;
    }
    if (mark === '(') return inBrackets(name, length);
    if (mark === '<') return collectUnreadable();
    if (!isNameLike(name, needs) && !isNoAction(name, needs)) return collectUnreadable();
    cursor.take(length);
    cursor.cut();
    parser.context = { ...parser.context, name };
    parser.state = afterName;
    return true;
  };
  const beginNamedJson = (name: string): true => {
    json.begin({ ...parser.context, name });
    return true;
  };
  const inBrackets = (name: string, length: number): boolean => {
    const after = cursor.peek(maxPeek, length + 1);
    const first = after.trimStart().charAt(0);
    if (first === '' && after.length < maxPeek && !cursor.isEnd) return false;
    if (!isNameLike(name, needs) || (first !== '{' && first !== ')')) return collectUnreadable();
    cursor.take(length + 1 + after.length - after.trimStart().length);
    if (first === '{') return beginNamedJson(name);
    return json.settle(readNamed(name, undefined, needs));
  };
  const afterName = afterSpace(
    cursor,
    () => withoutInput(),
    (text) => {
      const { name = '' } = parser.context;
      const given = inputLabelAt(text, cursor.isEnd);
      const next = lookAhead(cursor, words);
      if (given === 'more' || next === 'more') return false;
      const { label, tag, fence } = next;
      if (given !== undefined || label?.type === 'input') {
        cursor.take(given ?? label?.length ?? 0);
        parser.state = input;
        return true;
      }
      if (label !== undefined || tag !== undefined) return withoutInput();
      if (isNoAction(name, needs)) return noAction('');
      if (fence !== undefined) return afterFence(fence);
      if (/^`?$/.test(text) && !cursor.isEnd) return false;
      if (/^`?\{/.test(text)) {
        parser.state = input;
        return true;
      }
      if (/\n[ \t\r]*\n/.test(cursor.latest)) return withoutInput();
      return collect(() =>
        json.settle(unreadable('The text after the name of the tool is not JSON.', name)),
      );
    },
  );
  const withoutInput = (): true => {
    const { name = '', kind } = parser.context;
    if (kind === 'answer') return leaveAction();
    if (isNoAction(name, needs)) return noAction('');
    // A word after prose may be a part of it.
    const isWord = result.hasPreamble && !needs.tools.has(name) && !isCompletion(name, needs);
    return json.settle(
      isWord ? unreadable(`There is no tool '${name}'.`) : readNamed(name, undefined, needs),
    );
  };
  const afterFence = ({ length }: FenceLine): boolean => {
    const after = cursor.peek(maxPeek, length);
    const first = after.trimStart().charAt(0);
    if (first === '' && after.length < maxPeek && !cursor.isEnd) return false;
    if (first !== '{') return withoutInput();
    parser.state = input;
    return true;
  };
  const input = afterSpace(
    cursor,
    () => unlabelledInput(),
    (text) => {
      const next = lookAhead(cursor, labelsHere());
      if (next === 'more') return false;
      if (next.fence !== undefined) {
        cursor.take(next.fence.length);
        return true;
      }
      if (text === '`' && !cursor.isEnd) return false;
      if (!/^`?\{/.test(text)) return unlabelledInput();
      const { kind, name = '' } = parser.context;
      if (text.startsWith('`')) cursor.take(1);
      json.begin(isNoAction(name, needs) ? { kind } : parser.context);
      return true;
    },
  );
  const unlabelledInput = (): true => {
    const { name = '' } = parser.context;
    return collect((given) =>
      isNoAction(name, needs) ? noAction(given) : json.settle(readNamed(name, given, needs)),
    );
  };

  const functionBody = afterSpace(
    cursor,
    () => parameters(),
    (text) => (text.startsWith('{') ? beginNamedJson(parser.context.name ?? '') : parameters()),
  );
  const parameters = (): true => {
    const { name = '' } = parser.context;
    cursor.cut();
    parser.state = () => {
      const length = cursor.lengthUntil(/<\/(?:function|tool_call)>/g, 0);
      if (length === cursor.left && !cursor.isEnd) {
        cursor.take(Math.max(0, length - '</tool_call>'.length));
        return false;
      }
      cursor.take(length);
      const [{ input: given, problem } = {}] = readParameters(cursor.latest, name, needs.tools);
      return json.settle(
        problem === undefined ? readNamed(name, given, needs) : unreadable(problem, name),
      );
    };
    return true;
  };

  const collect = (then: (text: string) => true): true => {
    cursor.cut();
    parser.state = () => {
      if (cursor.left === 0) return cursor.isEnd ? then(cursor.latest) : false;
      if (cursor.isLineStart) {
        const next = lookAhead(cursor, words);
        if (next === 'more') return false;
        if (hasMark(next)) return then(cursor.latest);
      }
      takeRun(cursor, /\n/g);
      return true;
    };
    return true;
  };
  const collectUnreadable = (): true =>
    collect((text) => {
      const named = [...needs.tools.keys()].find((name) => text.includes(name));
      return json.settle(unreadable('The action cannot be parsed.', named));
    });
  parser.input = input;
  return { begin: beginAction, input, functionBody };
};

const cleanName = (text: string, { tools }: ReadingContext): string => {
  const name = text.trim();
  return tools.has(name) ? name : name.replaceAll(/^[`*_"'[<\s]+|[`*_"'\]>.:\s]+$/g, '');
};

const isNameLike = (name: string, { tools, completions }: ReadingContext): boolean =>
  tools.has(name) ||
  (/^[\w.:/-]{1,64}$/.test(name) && !/^(?:none|null|n\/a)$/i.test(name)) ||
  [...completions, 'final answer'].includes(name.toLowerCase());

const isNoAction = (name: string, needs: ReadingContext): boolean =>
  isNone(name, needs) ||
  (!needs.tools.has(name) &&
    /^(?:n\/a|none(?: is)?(?: needed| required| necessary)|no (?:further |more )?(?:actions?|tools?)(?: is| are)?(?: needed| required| necessary)?)\.?$/i.test(
      name,
    ));
