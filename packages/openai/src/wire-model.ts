import type { Model, ModelRequest, RequestOptions } from '@millrace/core';
import { toolNames, vendorModel } from '@millrace/wire';
import type { OpenAI } from 'openai';
import { createClient } from './client.js';
import { connect } from './connection.js';
import { nativeOutput } from './native-output.js';
import type { EndpointOptions } from './options.js';
import type { Profile, ToolIdRule } from './profile.js';
import type { Reader, ReaderSource } from './reader.js';
import { toolIds } from './tool-ids.js';

/** Whom a request is written for. */
export interface Target {
  readonly profile: Profile;
  readonly model: string;
  /** The name of a tool, in a form that the vendor takes. */
  readonly toolName: (name: string) => string;
  /** The id of a tool use, in a form that the vendor takes. */
  readonly toolId: (id: string) => string;
}

/** One of the wires that a vendor may speak. */
export interface Wire<Body> {
  readonly unsupported: readonly (keyof RequestOptions)[];
  readonly toolIds?: ToolIdRule | undefined;
  readonly write: (request: ModelRequest, target: Target) => Body;
  readonly send: (sdk: OpenAI, body: Body, init: RequestInit) => Promise<Response>;
  readonly reader: (source: ReaderSource) => Reader;
}

/** What goes with one request beside its body. */
export interface RequestInit {
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
}

/** Makes a model that is asked over a wire. Each request has a reader and names of its own. */
export const wireModel = <Body>(
  profile: Profile,
  model: string,
  options: EndpointOptions,
  wire: Wire<Body>,
): Model => {
  const connection = connect(profile, options);
  const client = createClient(connection, options);
  const vendor = profile.name;
  const asked = vendorModel(
    {
      name: model,
      unsupported: wire.unsupported,
      exchange: (request) => {
        const names = toolNames((request.tools ?? []).map(({ name }) => name));
        const toolName = (name: string): string => names.toWire(name);
        const toolId = toolIds(request.messages, wire.toolIds);
        const body = wire.write(request, { profile, model, toolName, toolId });
        const secrets = [...connection.secrets];
        return {
          vendor,
          secrets,
          send: async (signal) => {
            const [sdk, { headers, secret }] = await Promise.all([
              client(),
              connection.credentials(),
            ]);
            secrets.push(secret);
            return wire.send(sdk, body, { signal, headers });
          },
          ...wire.reader({ vendor, toolName: (name) => names.fromWire(name) }),
        };
      },
    },
    options,
  );
  return nativeOutput(asked, profile);
};
