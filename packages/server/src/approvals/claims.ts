import type { ToolCallBlock } from 'millrace';
import { canonicalJson, isRecord } from 'millrace/values';
import { hidesKeys, plainJson } from '../plain-json.js';
import { toBase64url } from './base64url.js';

/** The payload of a token. Its names are short to keep tokens short. */
export interface Claims {
  /** The version of the format. */
  readonly v: 1;
  readonly call: string;
  readonly tool: string;
  /** The id of the tool call. */
  readonly use: string;
  /** The hash of the arguments. */
  readonly args: string;
  /** Milliseconds since the epoch. */
  readonly exp: number;
  readonly nonce: string;
}

export const isClaims = (value: unknown): value is Claims =>
  isRecord(value) &&
  value['v'] === 1 &&
  typeof value['nonce'] === 'string' &&
  typeof value['exp'] === 'number' &&
  ['call', 'tool', 'use', 'args'].every((name) => typeof value[name] === 'string');

export const createNonce = (): string =>
  toBase64url(globalThis.crypto.getRandomValues(new Uint8Array(16)));

/** Copies arguments as plain JSON, one by one, so an argument that JSON cannot represent does not hide the others. */
export const plainArguments = (input: unknown): unknown =>
  plainJson(
    isRecord(input)
      ? Object.fromEntries(
          Object.entries(input).flatMap(([name, value]) =>
            value === undefined ? [] : [[name, plainJson(value)]],
          ),
        )
      : input,
  );

/** Whether plain JSON shows a reviewer all keys of the arguments. */
export const isShowable = (input: Readonly<Record<string, unknown>>): boolean =>
  !Object.entries(input).some(([name, value]) => hidesKeys({ [name]: value }));

/** The SHA-256 of plain JSON, independent of the order of keys. */
export const hashOf = async (plain: unknown): Promise<string> => {
  const bytes = new TextEncoder().encode(canonicalJson(plain));
  return toBase64url(new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', bytes)));
};

/** The digest of the name and the arguments of a tool call. */
export const digestOf = ({ name, input }: Pick<ToolCallBlock, 'name' | 'input'>): Promise<string> =>
  hashOf(plainJson({ name, input }));
