import { idPattern, isId } from './ids.js';
import { didYouMean, nearest } from './near.js';

/** What stands between `{{` and `}}`. */
export type Reference =
  | { readonly of: 'query' | 'session_id' | 'history' }
  | { readonly of: 'metadata'; readonly key: string }
  | {
      readonly of: 'component';
      readonly id: string;
      readonly field: ComponentField;
      /** Keys and places in what it is. */
      readonly path: readonly string[];
    };

/** What a template can ask of a component. */
export type ComponentField = (typeof componentFields)[number];

const componentFields = ['output', 'item', 'index'] as const;
const sysNames = ['query', 'session_id', 'history'] as const;

/** A text that has been read once: what it is filled with is never read as a template. */
export type Template = readonly (string | Reference)[];

/** What is wrong with a template. */
export interface TemplateFault {
  readonly problem: string;
  readonly suggestion: string | (() => string);
}

/**
 * Reads a template: what stands between `{{` and `}}` are references, and `\{{` is `{{`. In one pass. The ids are those that a wrong
 * reference may have meant.
 */
export const readTemplate = (
  text: string,
  ids: readonly string[] = [],
): { readonly template: Template; readonly faults: readonly TemplateFault[] } => {
  const template: (string | Reference)[] = [];
  const faults: TemplateFault[] = [];
  const say = (said: string): void => {
    const last = template.at(-1);
    if (typeof last === 'string') template[template.length - 1] = last + said;
    else if (said !== '') template.push(said);
  };
  let at = 0;
  for (let begin = text.indexOf('{{'); begin !== -1; begin = text.indexOf('{{', at)) {
    if (text[begin - 1] === '\\' && begin > at) {
      say(`${text.slice(at, begin - 1)}{{`);
      at = begin + 2;
      continue;
    }
    const end = text.indexOf('}}', begin);
    if (end === -1) {
      faults.push({ problem: "has a '{{' that no '}}' closes", suggestion: escape });
      break;
    }
    say(text.slice(at, begin));
    const written = text.slice(begin + 2, end).trim();
    const read = readReference(written, ids);
    if ('of' in read) template.push(read);
    else faults.push({ ...read, problem: `has '{{${cut(written)}}}', which ${read.problem}` });
    at = end + 2;
  }
  say(text.slice(at));
  return { template, faults };
};

const escape = "For the characters themselves, write '\\{{'.";

const cut = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

const component = new RegExp(`^(${idPattern.slice(1, -1)})@([^.\\s]*)((?:\\.[^.\\s]+)*)$`, 'u');

const readReference = (written: string, ids: readonly string[]): Reference | TemplateFault => {
  if (written.startsWith('sys.')) return readSys(written);
  const [, id, field, path] = component.exec(written) ?? [];
  if (id === undefined || field === undefined) {
    return { problem: 'is no reference', suggestion: () => meant(written, ids) };
  }
  const known = componentFields.find((name) => name === field);
  if (known === undefined) {
    return {
      problem: `asks for '${field}'`,
      suggestion: () => didYouMean(field, componentFields, 'things to ask for'),
    };
  }
  return { of: 'component', id, field: known, path: path?.split('.').slice(1) ?? [] };
};

/** What something was probably meant to be that is no reference. */
const meant = (written: string, ids: readonly string[]): string => {
  const [name = '', ...path] = written.split('.');
  const near = isId(name) ? nearest(name, [...ids, ...sysNames, 'metadata']) : undefined;
  if (near === undefined) return `Write '{{sys.query}}' or '{{component@output}}'. ${escape}`;
  if (ids.includes(near)) {
    const field = componentFields.find((it) => it === path[0]);
    const asked = field === undefined ? ['output', ...path] : path;
    return `Did you mean '{{${near}@${asked.join('.')}}}'?`;
  }
  const key = path.length === 0 ? '<key>' : path.join('.');
  return `Did you mean '{{sys.${near === 'metadata' ? `metadata.${key}` : near}}}'?`;
};

const readSys = (written: string): Reference | TemplateFault => {
  const name = written.slice('sys.'.length);
  const known = sysNames.find((it) => it === name);
  if (known !== undefined) return { of: known };
  if (/^metadata\.\S+$/u.test(name)) return { of: 'metadata', key: name.slice('metadata.'.length) };
  const names = [...sysNames, 'metadata.<key>'].map((it) => `sys.${it}`);
  return { problem: 'is not known', suggestion: () => didYouMean(written, names, 'known ones') };
};
