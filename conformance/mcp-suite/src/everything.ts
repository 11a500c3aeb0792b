import { type ContentBlock, requireApproval, type Tool, tool, toolOutput } from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { approveByClient } from '@millrace/mcp/server';
import { from } from 'rxjs';

const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

const image: ContentBlock = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: picture },
};
const fileNamed = (name: string, mediaType: string, text: string): ContentBlock => ({
  type: 'file',
  name,
  source: { kind: 'base64', mediaType, data: Buffer.from(text).toString('base64') },
});

const giving = (name: string, ...content: readonly ContentBlock[]): Tool =>
  tool({ name, description: `Is for the scenario ${name}.`, run: () => toolOutput({ content }) });

/** The tools that the scenarios for servers call, as far as Millrace can serve them. */
export const everything: readonly Tool[] = [
  tool({
    name: 'test_simple_text',
    description: 'Returns text.',
    run: () => 'This is a simple text response for testing.',
  }),
  giving('test_image_content', image),
  giving('test_audio_content', {
    type: 'audio',
    source: { kind: 'base64', mediaType: 'audio/wav', data: silence },
  }),
  giving(
    'test_embedded_resource',
    fileNamed('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ),
  giving(
    'test_multiple_content_types',
    { type: 'text', text: 'Multiple content types test:' },
    image,
    fileNamed('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ),
  tool({
    name: 'test_error_handling',
    description: 'Fails.',
    run: () => {
      throw new Error('This tool intentionally returns an error for testing');
    },
  }),
  tool({
    name: 'test_tool_with_progress',
    description: 'Reports progress.',
    run: () =>
      from([
        { progress: 0, total: 100 },
        { progress: 50, total: 100 },
        { progress: 100, total: 100 },
        toolOutput({ content: 'Done.' }),
      ]),
  }),
  // A question to the user is an approval here, so the answer of the suite, a name and an address, denies it.
  requireApproval(
    tool({
      name: 'test_elicitation',
      description: 'Asks the user.',
      input: jsonSchema({
        type: 'object',
        properties: { message: { type: 'string' } },
        required: ['message'],
      }),
      run: ({ message }) => message,
    }),
    approveByClient,
  ),
  tool({
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    input: jsonSchema({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
      additionalProperties: false,
    }),
    run: () => 'Hello.',
  }),
];
