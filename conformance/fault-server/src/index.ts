export { checkChatRequest } from './check/check-chat-request.js';
export { checkMessagesRequest } from './check/check-messages-request.js';
export { checkResponsesRequest } from './check/check-responses-request.js';
export type { CheckOptions, CheckRequest } from './check/check-request.js';
export type { Expectation, Fault, Outcome } from './faults/fault.js';
export { faults } from './faults/faults.js';
export {
  type Bytes,
  type Heartbeat,
  type Pieces,
  type ResponseScript,
  type Scenario,
  type SeenRequest,
  type Step,
  type Wire,
  wires,
} from './scenario.js';
export { type Identity, selfSigned } from './self-signed.js';
export { type FaultServer, type Played, startFaultServer } from './start-fault-server.js';
export {
  bytes,
  forever,
  hangUp,
  json,
  reset,
  stall,
  status,
  streamed,
  streamHeaders,
  wait,
} from './steps.js';
export type { Answer, AnsweredFinish, AnsweredTool, AnsweredUsage } from './streams/answer.js';
export {
  chatBody,
  chatChunk,
  chatDelta,
  chatDone,
  chatStream,
  chatUsage,
} from './streams/chat-stream.js';
export {
  messageEnd,
  messagesBlock,
  messagesBody,
  messagesEvent,
  messagesStream,
  messagesUsage,
  messageStart,
  ping,
} from './streams/messages-stream.js';
export {
  responseObject,
  responsesBody,
  responsesEvents,
  responsesStream,
  responsesUsage,
} from './streams/responses-stream.js';
export { dataOf, sse } from './streams/sse.js';
export { bodyOf, streamOf } from './streams/wires.js';
export { vendorError, type VendorErrorDetails } from './vendor-error.js';
