import type { AGUIEvent } from '@ag-ui/core';
import type { AgentEvent } from 'millrace';
import type { UIMessage, UIMessageChunk } from 'ai';
import { expectTypeOf } from 'expect-type';
import type { OperatorFunction } from 'rxjs';
import type { ApprovalQueue } from './approvals/index.js';
import { type MillraceData, toAgUi, toUiMessageStream, type UiMessageChunk } from './index.js';

// The chunks are those of the SDK.
expectTypeOf<UiMessageChunk>().toExtend<UIMessageChunk>();
expectTypeOf<UiMessageChunk<7>>().not.toExtend<UIMessageChunk>();

// What they are follows from the target.
expectTypeOf(toUiMessageStream()).toEqualTypeOf<OperatorFunction<AgentEvent, UiMessageChunk>>();
expectTypeOf(toUiMessageStream({ target: 6 })).toEqualTypeOf<
  OperatorFunction<AgentEvent, UiMessageChunk>
>();
expectTypeOf(toUiMessageStream({ target: 7 })).toEqualTypeOf<
  OperatorFunction<AgentEvent, UiMessageChunk<7>>
>();
// @ts-expect-error There is no such version.
toUiMessageStream({ target: 5 });

// A client can say what the data parts hold.
type Message = UIMessage<unknown, { [Name in keyof MillraceData]: MillraceData[Name] }>;
expectTypeOf<Extract<Message['parts'][number], { type: 'data-agent' }>['data']>().toEqualTypeOf<
  MillraceData['agent']
>();

expectTypeOf(toAgUi()).toEqualTypeOf<OperatorFunction<AgentEvent, AGUIEvent>>();
// @ts-expect-error An id is a text.
toAgUi({ runId: 1 });

// A desk is given to the stream as it is; with it, the chunks are what they were.
expectTypeOf<typeof toUiMessageStream>().toBeCallableWith({
  approvals: {} as unknown as ApprovalQueue,
});
// @ts-expect-error A verdict says yes or no.
void ({} as unknown as ApprovalQueue).decide('token', { reason: 'No.' });
