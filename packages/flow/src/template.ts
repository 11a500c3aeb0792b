import { didYouMean, nearest } from './did-you-mean.js';
import { idPattern, isId, namePattern } from './ids.js';
import { truncate } from './problem.js';

export type Reference =
  | { readonly of: 'query' | 'session_id' | 'history' }
  | { readonly of: 'metadata'; readonly key: string }
  | { readonly of: 'variable'; readonly name: string; readonly path: readonly string[] }
  | { readonly of: 'secret'; readonly name: string }
  | {
      readonly of: 'component';
      readonly id: string;
      readonly field: ComponentField;
      /** Keys and indexes in the value. */
      readonly path: readonly string[];
    };

export type ComponentField = (typeof componentFields)[number];

const componentFields = ['output', 'item', 'index', 'error', 'rounds', 'previous', 'done'] as const;
const sysNames = ['query', 'session_id', 'history'] as const;

/** A parsed template. Inserted values are never parsed as templates. */
export type Template = readonly (string | Reference)[];

export interface TemplateFault {
  readonly problem: string;
  readonly suggestion: string | (() => string);
}

/** Parses a template in one pass: `{{` and `}}` enclose a reference, and `\{{` is `{{`. `ids` are for suggestions. */
export const readTemplate = (
  text: string,
  ids: readonly string[] = [],
): { readonly template: Template; readonly faults: readonly TemplateFault[] } => {
  const template: (string | Reference)[] = [];
  const faults: TemplateFault[] = [];
  const append = (part: string): void => {
    const last = template.at(-1);
    if (typeof last === 'string') template[template.length - 1] = last + part;
    else if (part !== '') template.push(part);
  };
  let at = 0;
  for (let begin = text.indexOf('{{'); begin !== -1; begin = text.indexOf('{{', at)) {
    if (text[begin - 1] === '\\' && begin > at) {
      append(`${text.slice(at, begin - 1)}{{`);
      at = begin + 2;
      continue;
    }
    const end = text.indexOf('}}', begin);
    if (end === -1) {
      faults.push({ problem: "has a '{{' without a '}}'", suggestion: escape });
      break;
    }
    append(text.slice(at, begin));
    const source = text.slice(begin + 2, end).trim();
    const read = readReference(source, ids);
    if ('of' in read) template.push(read);
    else faults.push({ ...read, problem: `has '{{${truncate(source)}}}', which ${read.problem}` });
    at = end + 2;
  }
  append(text.slice(at));
  return { template, faults };
};

const escape = "For a literal '{{', write '\\{{'.";

const component = new RegExp(`^(${idPattern.slice(1, -1)})@([^.\\s]*)((?:\\.[^.\\s]+)*)$`, 'u');

const named = new RegExp(`^(var|secret)\\.(${namePattern.slice(1, -1)})((?:\\.[^.\\s]+)*)$`, 'u');

const readReference = (written: string, ids: readonly string[]): Reference | TemplateFault => {
  if (written.startsWith('sys.')) return readSys(written);
  const [, kind, name, keys = ''] = named.exec(written) ?? [];
  if (name !== undefined && kind === 'var')
    return { of: 'variable', name, path: keys.split('.').slice(1) };
  if (name !== undefined && keys === '') return { of: 'secret', name };
  const [, id, field, path] = component.exec(written) ?? [];
  if (id === undefined || field === undefined) {
    return {
      problem: 'is not a valid reference',
      suggestion: () => suggestReference(written, ids),
    };
  }
  const known = componentFields.find((fieldName) => fieldName === field);
  if (known === undefined) {
    return {
      problem: `asks for '${field}'`,
      suggestion: () => didYouMean(field, componentFields, 'possible fields'),
    };
  }
  return { of: 'component', id, field: known, path: path?.split('.').slice(1) ?? [] };
};

const suggestReference = (written: string, ids: readonly string[]): string => {
  const [name = '', ...path] = written.split('.');
  const near = isId(name) ? nearest(name, [...ids, ...sysNames, 'metadata']) : undefined;
  if (near === undefined)
    return `Write '{{sys.query}}', '{{var.name}}' or '{{component@output}}'. ${escape}`;
  if (ids.includes(near)) {
    const field = componentFields.find((it) => it === path[0]);
    const fields = field === undefined ? ['output', ...path] : path;
    return `Did you mean '{{${near}@${fields.join('.')}}}'?`;
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
