import type { NewJob } from "../jobs/job.ts";
import type { NewRow } from "../store/new-jobs.ts";
import type { GroupRow } from "../store/tables.ts";
import type { Submission } from "./parts.ts";

/** What every rollout of a group is made from; stored with the group as JSON. */
export type MemberTemplate = {
  job: Omit<NewJob, "id">;
  row: Omit<NewRow, "bodySha256" | "instance" | "member">;
};

/** Seeds stay in what every engine takes: 31 bits. */
const SEEDS = 2 ** 31;

/** The job for one sample of a group; a later try gets a seed that no other of the group has. */
export function memberJob(
  group: Pick<GroupRow, "seq" | "id" | "body_sha256" | "instance">,
  template: MemberTemplate,
  place: { id: string; sample: number; tries: number; numSamples: number },
): Submission {
  const { sample, tries, numSamples } = place;
  const options = JSON.parse(template.row.options);
  const first = options.sampling?.seed ?? Bun.hash.xxHash32(group.id);
  const seed = (first + sample + tries * numSamples) % SEEDS;
  const sampling = { ...options.sampling, seed };
  return {
    job: { ...template.job, id: place.id },
    row: {
      ...template.row,
      bodySha256: `${group.body_sha256}.${sample}.${tries}`,
      instance: group.instance,
      options: JSON.stringify({ ...options, sampling }),
      member: { groupSeq: group.seq, sample },
      labels: { group: group.id, ...template.row.labels },
    },
  };
}
