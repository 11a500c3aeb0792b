import { approversOfCall } from '../decide-tool.js';
import { misuse } from '../errors.js';
import { type Layer, trusted } from '../layer.js';
import type { Approver } from './types.js';

/** Decides on every run of a tool, those of sub-agents too, when the tool's own `approve` has said yes. Several all have to agree; that of a call is asked before that of its agent, and those of the calls above are asked last. */
export const approval = (approver: Approver): Layer => {
  if (typeof approver !== 'function') throw misuse('approval() takes a function that decides.');
  return trusted({
    name: 'approval',
    priority: 80,
    inherit: true,
    call:
      ({ local }) =>
      (next) =>
      (call) => {
        local(approversOfCall).unshift(approver);
        return next(call);
      },
  });
};
