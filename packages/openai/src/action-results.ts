import { type ContentBlock, textOf, type ToolResultBlock } from 'millrace';
import { canonicalJson, isRecord, parsedJson } from 'millrace/values';
import { type JsonRecord, textAt } from '@millrace/wire';
import { mediaOf, resultText } from './content.js';
import { addressOf, inlined } from './media.js';

/**
 * Writes the result of a call that the vendor leaves to the program (an approval, a shell, a computer, a patch) as the item
 * that answers it. A list of outputs of a shell is taken as it is. Returns `undefined` for other calls.
 */
export const actionResult = (call: JsonRecord, result: ToolResultBlock): JsonRecord | undefined => {
  const id = textAt(call, 'call_id') || textAt(call, 'id');
  return writers.get(textAt(call, 'type'))?.(id, result, call);
};

/** The rest of a result that the item of an action cannot contain: the content of a message that follows it. */
export const besideAction = (
  call: JsonRecord,
  result: ToolResultBlock,
): readonly ContentBlock[] => {
  const isComputer = textAt(call, 'type') === 'computer_call';
  const screenshot = isComputer ? imageOf(result) : undefined;
  const note = isComputer ? screenshotNote(result, screenshot) : '';
  const media = mediaOf(result.content).filter((block) => block !== screenshot);
  if (note === '' && media.length === 0) return [];
  return [{ type: 'text', text: note || 'The result of the last tool call contains:' }, ...media];
};

type Write = (id: string, result: ToolResultBlock, call: JsonRecord) => JsonRecord;

const writers: ReadonlyMap<string, Write> = new Map<string, Write>([
  ['mcp_approval_request', (id, result, call) => approvalOf(id, result, call)],
  [
    'local_shell_call',
    (id, result) => ({ type: 'local_shell_call_output', id, output: resultText(result) }),
  ],
  [
    'shell_call',
    (id, result, { action }) => ({
      type: 'shell_call_output',
      call_id: id,
      output: shellOutput(result),
      ...lengthOf(action),
    }),
  ],
  [
    'apply_patch_call',
    (id, result) => ({
      type: 'apply_patch_call_output',
      call_id: id,
      status: result.isError ? 'failed' : 'completed',
      output: textOf(result),
    }),
  ],
  [
    'computer_call',
    (id, result, { pending_safety_checks: checks }) => ({
      type: 'computer_call_output',
      call_id: id,
      output: screenshotOf(result),
      // The program has seen them in the input of the call, and the vendor accepts no result without them.
      ...(Array.isArray(checks) && checks.length > 0 ? { acknowledged_safety_checks: checks } : {}),
    }),
  ],
]);

/** Only an explicit yes approves, as with `approveLater`, and only to the arguments that the vendor will use. */
const approvalOf = (id: string, result: ToolResultBlock, call: JsonRecord): JsonRecord => {
  const given = parsedJson(textOf(result));
  const { approved, reason, input }: JsonRecord = isRecord(given) ? given : { approved: given };
  const isEdited =
    input !== undefined &&
    canonicalJson(input) !== canonicalJson(parsedJson(textAt(call, 'arguments')));
  const approve = approved === true && !result.isError && !isEdited;
  const why =
    typeof reason === 'string'
      ? reason
      : result.isError
        ? textOf(result)
        : isEdited
          ? 'The arguments cannot be edited.'
          : '';
  return {
    type: 'mcp_approval_response',
    approval_request_id: id,
    approve,
    ...(why === '' || approve ? {} : { reason: why }),
  };
};

/** Text is the output of one command that has ended. */
const shellOutput = (result: ToolResultBlock): readonly unknown[] => {
  const given = parsedJson(textOf(result));
  const list = Array.isArray(given) ? given : [given];
  if (list.length > 0 && list.every((it) => isRecord(it) && 'outcome' in it)) return list;
  const text = textOf(result);
  return [
    {
      stdout: result.isError ? '' : text,
      stderr: result.isError ? text : '',
      outcome: { type: 'exit', exit_code: result.isError ? 1 : 0 },
    },
  ];
};

const lengthOf = (action: unknown): JsonRecord => {
  const length = isRecord(action) ? action['max_output_length'] : undefined;
  return typeof length === 'number' ? { max_output_length: length } : {};
};

/** The image of the result, or a blank one: the vendor takes nothing else, and no call without a result. */
const screenshotOf = (result: ToolResultBlock): JsonRecord => {
  const image = imageOf(result);
  if (image === undefined) return { type: 'computer_screenshot', image_url: blank };
  return image.source.kind === 'id'
    ? { type: 'computer_screenshot', file_id: image.source.id }
    : { type: 'computer_screenshot', image_url: addressOf(inlined(image)) };
};

/** The newest image. */
const imageOf = ({ content }: ToolResultBlock) =>
  content.findLast((block) => block.type === 'image');

/** The text of the result. A blank screenshot needs it, or the model takes that for an empty screen. */
const screenshotNote = (result: ToolResultBlock, screenshot: ContentBlock | undefined): string => {
  if (screenshot === undefined) {
    return `There is no screenshot of the last computer call. Its result: ${resultText(result)}`;
  }
  const text = textOf(result);
  return text === '' ? '' : `The last computer call also returned: ${text}`;
};

/** A PNG of one transparent pixel. */
const blank =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
