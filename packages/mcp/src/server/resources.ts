import { MillraceError } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import {
  type Annotations,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
  UriTemplate,
} from '@modelcontextprotocol/server';
import { map, type Observable } from 'rxjs';
import type { McpCompletion } from './completion.js';
import { given$, type Given } from './lists.js';
import type { McpRequest } from './mcp-client.js';

/** A part of a resource. */
export interface McpResourcePart {
  /** Default: that of the resource. */
  readonly uri?: string;
  /** Default: that of the resource. */
  readonly mimeType?: string;
  readonly content: string | Uint8Array;
}

/** The content of a resource: text, bytes, or several parts. */
export type McpResourceContent = string | Uint8Array | readonly McpResourcePart[];

interface Described {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
}

/** Data that clients read by its URI. */
export interface McpResource extends Described {
  readonly uri: string;
  readonly uriTemplate?: undefined;
  /** The size in bytes, if known. */
  readonly size?: number;
  /** Returns or emits the content. */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly read: (request: McpRequest & { readonly uri: string }) => Given<McpResourceContent>;
}

/** Data that clients read by URIs of a form, such as `file:///logs/{name}`. */
export interface McpResourceTemplate extends Described {
  /** A template of RFC 6570. `{name}` matches up to the next `/`, and `{+path}` beyond it. */
  readonly uriTemplate: string;
  readonly uri?: undefined;
  /** Suggestions for the variables. Default: none. */
  readonly complete?: Readonly<Record<string, McpCompletion>>;
  /**
   * Returns or emits the content. `variables` are decoded. Never `.` or `..` as a step of a path, a backslash or a null
   * character, and `/` only in `{+path}`: URIs with those are not found.
   */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly read: (
    request: McpRequest & {
      readonly uri: string;
      readonly variables: Readonly<Record<string, string>>;
    },
  ) => Given<McpResourceContent>;
}

export const isTemplate = (
  resource: McpResource | McpResourceTemplate,
): resource is McpResourceTemplate => resource.uriTemplate !== undefined;

const describedOf = ({ name, title, description, mimeType, annotations }: Described) => ({
  name,
  ...defined({ title, description, mimeType, annotations }),
});

export const listedResource = (resource: McpResource): Resource => ({
  ...describedOf(resource),
  uri: resource.uri,
  ...(resource.size !== undefined && { size: resource.size }),
});

export const listedTemplate = (template: McpResourceTemplate): ResourceTemplateType => ({
  ...describedOf(template),
  uriTemplate: template.uriTemplate,
});

/** The resource of a URI, ready to be read. */
export interface FoundResource {
  readonly mimeType: string | undefined;
  readonly read$: (request: McpRequest, missing: () => Error) => Observable<McpResourceContent>;
}

/** Finds the resource of a URI: one of the list, or the first template that matches. Throws for clients if no template matches. */
export const resourceOf = (
  resources: readonly (McpResource | McpResourceTemplate)[],
  uri: string,
): FoundResource => {
  // A longer URI would be slow to match against templates.
  if (uri.length > longestUri) throw new ResourceNotFoundError(uri.slice(0, longestUri));
  for (const resource of resources) {
    if (!isTemplate(resource) && resource.uri === uri) {
      const { mimeType } = resource;
      return {
        mimeType,
        read$: (request, missing) => given$(() => resource.read({ ...request, uri }), missing),
      };
    }
  }
  for (const resource of resources) {
    const variables = isTemplate(resource) ? variablesOf(resource.uriTemplate, uri) : undefined;
    if (isTemplate(resource) && variables !== undefined) {
      const { mimeType } = resource;
      return {
        mimeType,
        read$: (request, missing) =>
          given$(() => resource.read({ ...request, uri, variables }), missing),
      };
    }
  }
  throw new ResourceNotFoundError(uri);
};

const longestUri = 1_024;

/** The decoded variables of a URI; undefined if it does not match, or one could leave its place in a path. */
const variablesOf = (
  template: string,
  uri: string,
): Readonly<Record<string, string>> | undefined => {
  const matched = new UriTemplate(template).match(uri);
  if (matched === null) return undefined;
  const isPath = new Set(
    [...template.matchAll(/\{[+#]([^}]*)\}/g)].flatMap(([, names = '']) => namesIn(names)),
  );
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(matched)) {
    const text = decoded(Array.isArray(value) ? value.join(',') : value);
    if (text === undefined || !isInPlace(text, isPath.has(name))) return undefined;
    variables[name] = text;
  }
  return variables;
};

const namesIn = (names: string): readonly string[] =>
  names.split(',').map((name) => name.replace('*', '').trim());

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
};

const isInPlace = (text: string, isPath: boolean): boolean =>
  !/[\\\0]/.test(text) &&
  (isPath || !text.includes('/')) &&
  !text.split(/[/,]/).some((step) => step === '.' || step === '..') &&
  !text.startsWith('/');

/** Emits the content of a resource for clients. */
export const contentsOf$ = (
  { read$, mimeType }: FoundResource,
  uri: string,
  request: McpRequest,
  most: number,
): Observable<ReadResourceResult> => {
  const misshapen = () =>
    new MillraceError(
      'invalidResponse',
      `The resource '${uri}': 'read' must return or emit a string, bytes or a list of parts { content }.`,
    );
  return read$(request, misshapen).pipe(
    map((content) => {
      const parts = isContent(content) ? [{ content }] : content;
      if (!isParts(parts)) throw misshapen();
      const contents = parts.map((part) => {
        const type = part.mimeType ?? mimeType;
        return {
          uri: part.uri ?? uri,
          ...(type !== undefined && { mimeType: type }),
          ...(typeof part.content === 'string'
            ? { text: part.content }
            : { blob: Buffer.from(part.content).toString('base64') }),
        };
      });
      const length = contents.reduce(
        (sum, it) => sum + ('text' in it ? it.text.length : it.blob.length),
        0,
      );
      // Do not cut it: a part of a resource would be wrong.
      if (length > most) throw tooLarge(uri, most);
      return { contents };
    }),
  );
};

const isContent = (content: unknown): content is string | Uint8Array =>
  typeof content === 'string' || content instanceof Uint8Array;

const isParts = (parts: unknown): parts is readonly McpResourcePart[] =>
  Array.isArray(parts) &&
  parts.every((part: unknown) => isRecord(part) && isContent(part['content']));

const tooLarge = (uri: string, most: number): MillraceError =>
  new MillraceError(
    'tooLarge',
    `The resource '${uri}' has more than ${most} characters: raise limits.result.`,
    { userMessage: `The resource is larger than ${most} characters.` },
  );

// ---------------------------------------------------------------- checks

export const checkResources = (
  resources: readonly (McpResource | McpResourceTemplate)[],
): readonly (McpResource | McpResourceTemplate)[] => {
  const keys = resources.map(keyOf);
  const twice = keys.find((key, at) => keys.indexOf(key) !== at);
  if (twice !== undefined) throw misuse(`Two resources have the URI '${twice}'.`);
  return resources;
};

const keyOf = (resource: unknown): string => {
  if (
    !isRecord(resource) ||
    typeof resource['name'] !== 'string' ||
    typeof resource['read'] !== 'function'
  ) {
    throw misuse('A resource is { uri, name, read }, or { uriTemplate, name, read }.');
  }
  const { uri, uriTemplate, name } = resource;
  if ((uri === undefined) === (uriTemplate === undefined)) {
    throw misuse(`The resource '${name}' needs either 'uri' or 'uriTemplate'.`);
  }
  if (typeof uriTemplate === 'string') {
    checkTemplate(uriTemplate);
    return uriTemplate;
  }
  if (typeof uri !== 'string' || !URL.canParse(uri) || uri.length > longestUri) {
    const text = `needs a complete 'uri' of up to ${longestUri} characters, such as 'docs:///intro'.`;
    throw misuse(`The resource '${name}' ${text}`);
  }
  return uri;
};

/** Limits adjacent expressions, which would make URIs slow to match. */
const checkTemplate = (template: string): void => {
  try {
    new UriTemplate(template);
  } catch (cause) {
    throw new MillraceError('config', `'${template}' is not a URI template.`, { cause });
  }
  const paths = template.match(/\{[+#]/g) ?? [];
  const inOneStep = template
    .replaceAll(/\{[?&][^}]*\}/g, '')
    .split(/\/(?![^{]*\})/)
    .map((step) => (step.match(/\{/g) ?? []).length);
  if (!template.includes('{') || paths.length > 1 || inOneStep.some((count) => count > 3)) {
    throw misuse(
      `The template '${template}' needs expressions such as {name}: up to 3 between two slashes, and one {+path}.`,
    );
  }
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);
