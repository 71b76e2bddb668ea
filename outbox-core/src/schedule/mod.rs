//! Named jobs by interval or cron expression.

mod cluster;
#[cfg(feature = "cron")]
mod cron;
mod execute;
mod job;
pub mod jobs;
mod scheduled;
mod scheduler;
mod streak;
mod ticks;
mod when;

pub use job::{Job, JobEnd, JobRun};
pub use scheduled::{Missed, ScheduledJob};
pub use scheduler::{JobReport, Scheduler, SchedulerBuilder, SchedulerReport};
pub use when::Schedule;
