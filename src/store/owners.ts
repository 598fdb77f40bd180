/** Where a group has its client, and a batch: in the words of their indexes. */
export const GROUP_CLIENT = "groups.template ->> '$.row.client'";
export const BATCH_CLIENT = "batches.options ->> '$.client'";
