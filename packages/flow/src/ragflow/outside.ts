import { isRecord, parsedJson } from 'millrace/values';
import type { HumanField } from '../document.js';
import { limits } from '../limits.js';
import { nameFrom, recordIn, recordsIn, textIn, textsIn } from './canvas.js';
import {
  type Converted,
  type Conversion,
  isSet,
  numberOf,
  within,
  noteParams,
  handling,
  links,
  onErrorOf,
  toolName,
  templateFrom,
  asText,
} from './conversion.js';

export const convertForm = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { inputs, tips, enable_tips } = it.params;
  const fields = Object.entries(recordIn(inputs)).map(([name, input]) => {
    const { name: label, type, options, optional } = recordIn(input);
    const choices = textsIn(options);
    const kind = textIn(type).toLowerCase();
    if (kind.includes('file')) note('inputs', `'${name}' is a file: it is asked for as text.`);
    const field: HumanField = {
      type: choices.length > 0 ? 'choice' : fieldType(kind),
      ...(textIn(label) !== '' && { label: textIn(label) }),
      ...(choices.length > 0 && { choices: [...new Set(choices)] }),
      ...(optional === true && { required: false }),
    };
    return [nameFrom(name), field] as const;
  });
  const message = enable_tips === false ? '' : refs.text(textIn(tips), 'tips');
  return {
    component: {
      component_name: 'human',
      params: {
        message: message || 'Please fill in the form.',
        ...(fields.length > 0 && { fields: Object.fromEntries(fields) }),
        ...onErrorOf(conversion),
      },
      ...links(conversion),
    },
  };
};

const fieldType = (kind: string): HumanField['type'] => {
  if (kind === 'integer' || kind === 'number') return 'number';
  return kind === 'boolean' ? 'boolean' : 'text';
};

const methods = ['GET', 'POST', 'PUT'] as const;

export const convertInvoke = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const { params } = it;
  const method = methods.find((name) => name === textIn(params['method']).toUpperCase()) ?? 'GET';
  const values = recordsIn(params['variables']).map((item): readonly [string, unknown] => {
    const ref = textIn(item['ref']);
    const value = item['value'];
    const text = typeof value === 'string' ? refs.text(value, 'variables') : value;
    return [textIn(item['key']), ref === '' ? (text ?? '') : refs.ref(ref, 'variables')];
  });
  const url = refs.text(textIn(params['url']), 'url');
  const query = values
    .map(([key, value]) => `${encodeURIComponent(key)}=${asText(value)}`)
    .join('&');
  const isSent = method !== 'GET' && values.length > 0;
  if (isSent && textIn(params['datatype']).toLowerCase() === 'formdata') {
    note('datatype', 'Forms are not supported: the values are sent as JSON.');
  }
  noteParams(conversion, 'Convert the response in a function or an agent.', ['clean_html']);
  noteParams(conversion, 'Set the proxy on the `fetch` that the program provides.', ['proxy']);
  const headers = headersIn(conversion, textIn(params['headers']));
  const { retry, on_error } = handling(conversion);
  return {
    component: {
      component_name: 'http',
      params: {
        url: isSent || query === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${query}`,
        method,
        ...(Object.keys(headers).length > 0 && { headers }),
        ...(isSent && { body: Object.fromEntries(values) }),
        timeout_ms: within((numberOf(params['timeout']) ?? 60) * 1_000, 1, limits.delay),
        ...(retry && method !== 'POST' && { retry }),
        ...(on_error && { on_error }),
      },
      ...links(conversion),
    },
  };
};

/** Credentials do not belong into documents, so they become secrets. */
const headersIn = (
  { it, refs, note }: Conversion,
  written: string,
): Readonly<Record<string, string>> => {
  const given = parsedJson(written);
  if (written.trim() !== '' && !isRecord(given))
    note('headers', 'They are not JSON: they are left out.');
  const entries = Object.entries(recordIn(given)).map(
    ([name, value]): readonly [string, string] => {
      const text = refs.text(asText(value), 'headers');
      if (!/authorization|api-?key|token|cookie|secret/iu.test(name) || text.includes('{{')) {
        return [name, text];
      }
      const secret = nameFrom(it.id, name).toUpperCase();
      note('headers', `The value of '${name}' is a secret: pass it as 'secrets.${secret}'.`);
      return [name, `{{secret.${secret}}}`];
    },
  );
  return Object.fromEntries(entries);
};

export const convertCode = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const name = nameFrom(it.id);
  note('script', `A document has no code: provide a function '${name}' that returns its outputs.`);
  const given = recordIn(it.params['arguments']);
  const input = Object.entries(given).map(([key, value]): readonly [string, unknown] => [
    key,
    typeof value === 'string' ? templateFrom(value, 'arguments', refs) : value,
  ]);
  return {
    component: {
      component_name: 'code',
      params: {
        function: name,
        input: Object.fromEntries(input),
        ...handling(conversion),
      },
      ...links(conversion),
    },
  };
};

/** Params that are settings of all components. */
const general = new Set([
  ...['outputs', 'inputs', 'max_retries', 'delay_after_error', 'description'],
  ...['exception_method', 'exception_default_value', 'exception_goto', 'exception_comment'],
]);

/** Any other component is a tool there, or a step of another kind of canvas. */
export const convertTool = (conversion: Conversion): Converted => {
  const { it, refs, note } = conversion;
  const name = toolName(it.name.replace(/(?<=[a-z0-9])(?=[A-Z])/gu, '_').toLowerCase());
  note('component_name', `Flows have no component '${it.name}': provide a tool '${name}'.`);
  const own = Object.entries(it.params).filter(([key, value]) => !general.has(key) && isSet(value));
  const input = own.flatMap(([key, value]) =>
    typeof value === 'string' && /@|(?:sys|env)\./u.test(value)
      ? [[key, templateFrom(value, key, refs)] as const]
      : [],
  );
  const kept = new Set(input.map(([key]) => key));
  own
    .filter(([key]) => !kept.has(key))
    .forEach(([key]) => {
      note(key, `It is a setting of the tool '${name}': set it there.`);
    });
  return {
    component: {
      component_name: 'tool',
      params: { tool: name, input: Object.fromEntries(input), ...handling(conversion) },
      ...links(conversion),
    },
  };
};
