import equal from 'fast-deep-equal';
import type { Desk, Place, State } from './desk.js';
import type { JsonStates } from './json-states.js';
import { ahead, behindSpace, hasMark, type FenceLine, inputLabelAt, reach } from './peek.js';
import { isCompletion, isNone, parameterOf, readNamed, type ReadingNeeds } from './read-entry.js';
import { nothing, unreadable, type Reading } from './findings.js';
import { takeRun } from './tape.js';
import { isTooDeep, parsedJson } from '../../values/json.js';
import type { ToolDeclaration } from '../../models/model.js';

const maxName = 200;

export const createActionStates = (desk: Desk, json: JsonStates) => {
  const { findings, words, needs, tape, voice } = desk;

  const beginAction = (at: Place): 'found' => {
    desk.place = at;
    desk.last = nothing;
    desk.state = action;
    return 'found';
  };
  const labelsHere = (): typeof words => (tape.isLineStart ? words : []);
  const action = behindSpace(
    tape,
    () => leaveAction(),
    (text) => {
      const next = ahead(tape, labelsHere());
      if (next === 'more') return false;
      const { fence, tag, label } = next;
      if (fence !== undefined) {
        tape.take(fence.length);
        return true;
      }
      if (label !== undefined) return leaveAction();
      if (tag?.type === 'function' && tag.name !== undefined) {
        tape.take(tag.length);
        desk.place = { ...desk.place, name: tag.name };
        desk.state = functionBody;
        return true;
      }
      if (tag?.type === 'call' || tag?.type === 'action') {
        tape.take(tag.length);
        return true;
      }
      if (tag !== undefined) return leaveAction();
      if (/^(?:\[\s*|`)$/.test(text) && text.length < reach && !tape.isEnd) return false;
      if (text.startsWith('`{')) tape.take(1);
      if (/^`?(?:\{|\[\s*[{"'\]])/.test(text)) json.begin(desk.place);
      else desk.state = nameLine;
      return true;
    },
  );
  const noAction = (behind: string): true => {
    if (voice.channel === 'thought' && findings.asks.length === 0) voice.turnTo('open');
    voice.literal(behind.replace(/^\s*[`"'(]*(?:none|null|n\/a)[`"').]*\s*(?:\n|$)/i, ''));
    desk.toProse();
    return true;
  };
  const leaveAction = (): true => {
    if (desk.place.kind === 'answer') voice.literal(tape.taken);
    desk.toProse();
    return true;
  };

  const nameLine: State = () => {
    const length = tape.before(/[\n{(<]|\[ARGS\]|\[CALL_ID\]/g, 0);
    if (length === tape.left && !tape.isEnd && length < maxName) return false;
    if (length >= maxName) return collectUnreadable();
    const mark = tape.peek(1, length);
    if (mark === '[' && tape.peek(9, length) === '[CALL_ID]') {
      const end = tape.before(/\[ARGS\]|\{/g, length);
      if (end >= 2 * maxName) return collectUnreadable();
      if (end === tape.left && !tape.isEnd) return false;
    }
    tape.cut();
    const name = cleanName(tape.peek(length), needs);
    if (mark === '{') {
      const isName = isNameLike(name, needs);
      tape.take(length);
      if (isName) return beginNamedJson(name);
      if (desk.place.kind === 'own') voice.speech.say('thinking', tape.latest);
      json.begin(desk.place);
      return true;
    }
    if (mark === '[') {
      if (!isNameLike(name, needs)) return collectUnreadable();
      tape.take(tape.before(/\[ARGS\]|\{/g, length));
      if (tape.peek(1) === '[') tape.take('[ARGS]'.length);
      desk.place = { ...desk.place, name };
      desk.state = input;
      return true;
    }
    if (mark === '(') return inBrackets(name, length);
    if (mark === '<') return collectUnreadable();
    if (!isNameLike(name, needs) && !isNoAction(name, needs)) return collectUnreadable();
    tape.take(length);
    tape.cut();
    desk.place = { ...desk.place, name };
    desk.state = behindName;
    return true;
  };
  const beginNamedJson = (name: string): true => {
    json.begin({ ...desk.place, name });
    return true;
  };
  /** `name({…})` and `name()`. */
  const inBrackets = (name: string, length: number): boolean => {
    const behind = tape.peek(reach, length + 1);
    const first = behind.trimStart().charAt(0);
    if (first === '' && behind.length < reach && !tape.isEnd) return false;
    if (!isNameLike(name, needs) || (first !== '{' && first !== ')')) return collectUnreadable();
    tape.take(length + 1 + behind.length - behind.trimStart().length);
    if (first === '{') return beginNamedJson(name);
    return json.settle(readNamed(name, undefined, needs));
  };
  const behindName = behindSpace(
    tape,
    () => withoutInput(),
    (text) => {
      const { name = '' } = desk.place;
      const given = inputLabelAt(text, tape.isEnd);
      const next = ahead(tape, words);
      if (given === 'more' || next === 'more') return false;
      const { label, tag, fence } = next;
      if (given !== undefined || label?.type === 'input') {
        tape.take(given ?? label?.length ?? 0);
        desk.state = input;
        return true;
      }
      if (label !== undefined || tag !== undefined) return withoutInput();
      if (isNoAction(name, needs)) return noAction('');
      if (fence !== undefined) return behindFence(fence);
      if (/^`?$/.test(text) && !tape.isEnd) return false;
      if (/^`?\{/.test(text)) {
        desk.state = input;
        return true;
      }
      if (/\n[ \t\r]*\n/.test(tape.latest)) return withoutInput();
      return collect(() =>
        json.settle(unreadable('What stands behind the name of the tool is no JSON.', name)),
      );
    },
  );
  const withoutInput = (): true => {
    const { name = '', kind } = desk.place;
    if (kind === 'answer') return leaveAction();
    if (isNoAction(name, needs)) return noAction('');
    // A word behind prose may be a part of it.
    const isWord = findings.hasLead && !needs.tools.has(name) && !isCompletion(name, needs);
    return json.settle(
      isWord ? unreadable(`There is no tool '${name}'.`) : readNamed(name, undefined, needs),
    );
  };
  const behindFence = ({ length }: FenceLine): boolean => {
    const behind = tape.peek(reach, length);
    const first = behind.trimStart().charAt(0);
    if (first === '' && behind.length < reach && !tape.isEnd) return false;
    if (first !== '{') return withoutInput();
    desk.state = input;
    return true;
  };
  const input = behindSpace(
    tape,
    () => looseInput(),
    (text) => {
      const next = ahead(tape, labelsHere());
      if (next === 'more') return false;
      if (next.fence !== undefined) {
        tape.take(next.fence.length);
        return true;
      }
      if (text === '`' && !tape.isEnd) return false;
      if (!/^`?\{/.test(text)) return looseInput();
      const { kind, name = '' } = desk.place;
      if (text.startsWith('`')) tape.take(1);
      json.begin(isNoAction(name, needs) ? { kind } : desk.place);
      return true;
    },
  );
  const looseInput = (): true => {
    const { name = '' } = desk.place;
    return collect((given) =>
      isNoAction(name, needs) ? noAction(given) : json.settle(readNamed(name, given, needs)),
    );
  };

  const functionBody = behindSpace(
    tape,
    () => parameters(),
    (text) => (text.startsWith('{') ? beginNamedJson(desk.place.name ?? '') : parameters()),
  );
  const parameters = (): true => {
    const { name = '' } = desk.place;
    tape.cut();
    desk.state = () => {
      const length = tape.before(/<\/(?:function|tool_call)>/g, 0);
      if (length === tape.left && !tape.isEnd) {
        tape.take(Math.max(0, length - '</tool_call>'.length));
        return false;
      }
      tape.take(length);
      return json.settle(readParameters(name, tape.latest, needs));
    };
    return true;
  };

  const collect = (then: (text: string) => true): true => {
    tape.cut();
    desk.state = () => {
      if (tape.left === 0) return tape.isEnd ? then(tape.latest) : false;
      if (tape.isLineStart) {
        const next = ahead(tape, words);
        if (next === 'more') return false;
        if (hasMark(next)) return then(tape.latest);
      }
      takeRun(tape, /\n/g);
      return true;
    };
    return true;
  };
  const collectUnreadable = (): true =>
    collect((text) => {
      const named = [...needs.tools.keys()].find((name) => text.includes(name));
      return json.settle(unreadable('The action cannot be read.', named));
    });
  desk.input = input;
  return { begin: beginAction, input, functionBody };
};

const cleanName = (text: string, { tools }: ReadingNeeds): string => {
  const name = text.trim();
  return tools.has(name) ? name : name.replaceAll(/^[`*_"'[<\s]+|[`*_"'\]>.:\s]+$/g, '');
};

const isNameLike = (name: string, { tools, completions }: ReadingNeeds): boolean =>
  tools.has(name) ||
  (/^[\w.:/-]{1,64}$/.test(name) && !/^(?:none|null|n\/a)$/i.test(name)) ||
  [...completions, 'final answer'].includes(name.toLowerCase());

const isNoAction = (name: string, needs: ReadingNeeds): boolean =>
  isNone(name, needs) ||
  (!needs.tools.has(name) &&
    /^(?:n\/a|none(?: is)?(?: needed| required| necessary)|no (?:further |more )?(?:actions?|tools?)(?: is| are)?(?: needed| required| necessary)?)\.?$/i.test(
      name,
    ));

const readParameters = (name: string, text: string, needs: ReadingNeeds): Reading => {
  const tool = needs.tools.get(name);
  const input = new Map<string, unknown>();
  let at = 0;
  const pattern = /\s*<parameter=([^<>\n]{1,100})>/gy;
  for (;;) {
    pattern.lastIndex = at;
    const [lead, given] = pattern.exec(text) ?? [];
    if (lead === undefined || given === undefined) break;
    const key = given.trim();
    const end = text.indexOf('</parameter>', at + lead.length);
    if (end < 0) return unreadable(`The parameter '${key}' is not closed.`, name);
    const read = readParameter(text.slice(at + lead.length, end), key, tool);
    if (read === undefined) return unreadable(`The parameter '${key}' is no JSON.`, name);
    if (input.has(key) && !equal(input.get(key), read.value)) {
      return unreadable(`The parameter '${key}' is there twice.`, name);
    }
    input.set(key, read.value);
    at = end + '</parameter>'.length;
  }
  return text.slice(at).trim() === ''
    ? readNamed(name, Object.fromEntries(input), needs)
    : unreadable('There is text between the parameters.', name);
};

const readParameter = (
  written: string,
  key: string,
  tool: ToolDeclaration | undefined,
): { readonly value: unknown } | undefined => {
  const text = written.replace(/^\r?\n/, '').replace(/\r?\n$/, '');
  const schema = parameterOf(tool, key);
  if (schema?.['type'] === 'string') return { value: text };
  const value = parsedJson(text);
  if (value !== undefined && !isTooDeep(value)) return { value };
  const types = schema === undefined ? ['string'] : [schema['type']].flat();
  return types.includes('string') ? { value: text } : undefined;
};
