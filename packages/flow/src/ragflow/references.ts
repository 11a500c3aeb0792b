import type { Canvas, CanvasComponent } from './canvas.js';
import { nameFrom, recordIn, recordsIn, textIn } from './canvas.js';

/** Converts the references of a canvas to those of a document. */
export interface References {
  /** Text with references such as `{sys.query}` and `{Agent:Ann@content}`. */
  readonly text: (text: string, param: string) => string;
  /** A single reference without braces: `sys.query`. */
  readonly ref: (ref: string, param: string) => string;
}

const one = '(?:[A-Za-z0-9_:-]+@[A-Za-z0-9_.-]+|(?:sys|env)\\.[A-Za-z0-9_.]+)';
const reference = new RegExp(`\\{\\{\\s*(${one})\\s*\\}\\}|\\{(${one})\\}`, 'gu');

/** `note` reports a reference that has no counterpart. */
export const createReferences = (
  canvas: Canvas,
  from: CanvasComponent,
  note: (param: string, reason: string) => void,
): References => {
  const ref = (written: string, param: string): string => {
    const name = written.trim().replace(/^\{+|\}+$/gu, '');
    if (name.startsWith('env.')) return variableReference(canvas, name.slice('env.'.length));
    if (name.startsWith('sys.'))
      return sysReference(name.slice('sys.'.length), (why) => note(param, why));
    const [id = '', output = ''] = name.split(/@(.*)/su);
    const component = canvas.components.get(id);
    if (component === undefined) {
      note(param, `'{${name}}' names a component that the canvas does not have. It is empty.`);
      return '';
    }
    const why = (reason: string): void => {
      note(param, reason);
    };
    return outOfLoop(canvas, from, component, componentReference(canvas, component, output, why));
  };
  const text = (written: string, param: string): string => {
    const parts = [...written.matchAll(reference)].reduce<{
      readonly done: string;
      readonly at: number;
    }>(
      ({ done, at }, match) => ({
        done: `${done}${literal(written.slice(at, match.index))}${ref(match[1] ?? match[2] ?? '', param)}`,
        at: match.index + match[0].length,
      }),
      { done: '', at: 0 },
    );
    return parts.done + literal(written.slice(parts.at));
  };
  return { text, ref };
};

const literal = (text: string): string => text.replaceAll('{{', '\\{{');

/** The name of an `env.` variable in the document. */
export const variableNamed = (name: string): string => nameFrom(name);

const variableReference = (canvas: Canvas, name: string): string => {
  const [first = '', ...path] = name.split('.');
  const known = canvas.variables.has(name) ? name : first;
  const keys = known === name ? [] : path;
  return `{{${['var', variableNamed(known)].join('.')}${keys.map((key) => `.${key}`).join('')}}}`;
};

const sysReference = (name: string, note: (why: string) => void): string => {
  if (name === 'query' || name === 'history') return `{{sys.${name}}}`;
  if (name !== 'user_id') {
    note(`'{sys.${name}}' is not known to flows. Pass it as 'metadata.${name}' of the call.`);
  }
  return `{{sys.metadata.${name}}}`;
};

/** The outputs that are the whole output of a component. */
const wholeOutputs: Readonly<Record<string, readonly string[]>> = {
  agent: ['content', 'structured'],
  llm: ['content', 'structured'],
  generate: ['content', 'structured'],
  retrieval: ['formalized_content', 'json', 'chunks'],
  categorize: ['category_name'],
  invoke: ['result'],
  message: ['content'],
  stringtransform: ['result'],
};

/** After a loop, the outputs of the components in it are those of the last round. */
const outOfLoop = (
  canvas: Canvas,
  from: CanvasComponent,
  to: CanvasComponent,
  written: string,
): string => {
  const loop = canvas.components.get(to.parent ?? '');
  const isWithin = from.parent === to.parent || from.original === loop?.original;
  if (loop?.kind !== 'loop' || isWithin) return written;
  return written.replace(`{{${to.id}@output`, `{{${loop.id}@previous.${to.id}`);
};

const componentReference = (
  canvas: Canvas,
  component: CanvasComponent,
  output: string,
  note: (why: string) => void,
): string => {
  const { id, kind, parent, params } = component;
  const [field = '', ...path] = output.split('.');
  const keys = path.map((key) => `.${key}`).join('');
  if (field === '_ERROR') {
    if (params['exception_method'] === 'goto' || params['exception_method'] === 'comment') {
      return `{{${id}@error.message}}`;
    }
    note(`Without a handler, an error of '${id}' ends the flow, so '{${id}@_ERROR}' is empty.`);
    return '';
  }
  switch (kind) {
    case 'begin': {
      const inputs = Object.keys(recordIn(params['inputs']));
      if (inputs.length <= 1) return '{{sys.query}}';
      note(
        `'{${id}@${field}}' is an input of its own. Pass it as 'metadata.${field}' of the call.`,
      );
      return `{{sys.metadata.${field}}}`;
    }
    case 'iterationitem': {
      const outer = canvas.components.get(parent ?? '')?.id ?? id;
      if (field !== 'index') return `{{${outer}@item${keys}}}`;
      note(`'{${id}@index}' counts from 0; '{{${outer}@index}}' counts from 1.`);
      return `{{${outer}@index}}`;
    }
    case 'loop':
      return `{{var.${nameFrom(id, field)}${keys}}}`;
    case 'loopitem': {
      const outer = canvas.components.get(parent ?? '')?.id ?? id;
      return `{{${outer}@index}}`;
    }
    case 'variableaggregator':
      return `{{var.${nameFrom(id, field)}${keys}}}`;
    case 'stringtransform':
      return params['method'] === 'merge'
        ? `{{var.${nameFrom(id, 'result')}}}`
        : `{{${id}@output${keys}}}`;
    case 'codeexec':
    case 'code':
    case 'userfillup':
      return `{{${id}@output.${field}${keys}}}`;
    case 'iteration':
    case 'switch':
      return kind === 'switch' ? '' : `{{${id}@output${keys}}}`;
    default: {
      const whole = wholeOutputs[kind];
      if (whole?.includes(field) === false) {
        note(`The output '${field}' of '${id}' is not known to flows. Its whole output is used.`);
      }
      return `{{${id}@output${keys}}}`;
    }
  }
};

/** The candidates of a group of a `VariableAggregator`. */
export const candidatesIn = (group: Readonly<Record<string, unknown>>): readonly string[] =>
  recordsIn(group['variables']).map((it) => textIn(it['value']));
