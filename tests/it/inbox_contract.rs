//! What every store promises (`src/inbox/mod.rs`), each promise as one test. A store keeps the contract once it has its line
//! at the end of this file.

mod attempts;
mod book;
mod changes;
mod claims;
mod expiry;
mod fold;
mod forecast;
mod intake;
mod known;
mod lists;
mod memory;
mod people;
mod queues;
mod recordings;
mod stage;
mod timing;
mod tokens;
mod versions;

/// Each promise as a test of the store that `$store` opens.
macro_rules! promises {
    ($store:ident; $($area:ident: $($promise:ident),+;)+) => {
        mod $store {
            $(mod $area {
                $(
                    #[tokio::test]
                    async fn $promise() {
                        crate::inbox_contract::$area::$promise(crate::inbox_contract::stores::$store()).await;
                    }
                )+
            })+
        }
    };
}

macro_rules! keeps_the_contract {
    ($store:ident) => {
        promises! {
            $store;
            intake:
                an_event_is_accepted_once_and_the_first_write_wins,
                ids_are_compared_within_their_source,
                what_is_accepted_is_read_back_as_it_was,
                a_delivery_is_owed_from_the_same_write_on,
                what_is_let_in_is_in_flight_and_comes_as_news,
                what_is_due_comes_as_news_where_nobody_lets_in,
                nothing_that_was_let_in_survives_a_write_that_fails,
                a_large_intake_is_written_in_order,
                the_hosts_notices_are_written_with_the_read_and_owe_like_any_other,
                two_workspaces_do_not_mix,
                what_came_with_a_first_answer_is_known_by_that,
                data_comes_back_byte_for_byte_whatever_its_size;
            known:
                what_routes_may_know_comes_back_as_it_was,
                the_past_is_read_from_a_number_on_in_bounded_parts,
                a_number_is_found_from_which_on_lies_all_that_was_received_since,
                a_clock_that_was_set_back_hides_nothing;
            claims:
                each_delivery_is_handed_out_once,
                what_is_not_due_is_not_handed_out,
                what_is_longest_due_comes_first,
                no_more_is_handed_out_than_asked_for,
                a_queue_that_keeps_its_order_asks_for_one_delivery,
                two_attempts_of_one_subject_never_run_at_once_where_it_is_remembered,
                what_waits_for_others_of_its_subject_is_said_to_be_due,
                a_long_row_of_one_subject_keeps_no_other_back,
                what_others_waited_for_keeps_them_no_longer_when_it_is_taken_away,
                subjects_do_not_matter_where_nothing_is_remembered,
                every_queue_that_was_asked_says_what_is_due_next,
                queues_are_served_in_the_order_they_are_asked_for,
                ids_are_stable_and_differ_between_stores;
            attempts:
                an_outcome_from_an_older_opening_is_refused,
                an_outcome_is_recorded_once,
                an_attempt_in_flight_goes_on_after_a_crash,
                an_attempt_with_nothing_kept_is_taken_to_have_begun_its_first_effect,
                what_was_let_in_as_it_was_written_goes_on_after_a_crash_too,
                an_interrupted_attempt_gets_its_number_back,
                what_is_given_back_keeps_its_place,
                a_stop_between_two_steps_keeps_the_past,
                a_wait_forgets_the_past_and_keeps_what_to_carry_on_with,
                the_next_attempt_begins_anew_but_for_what_it_carries_on_with,
                attempts_are_listed_as_they_went,
                a_retry_is_told_of,
                notices_are_written_with_the_end_that_they_tell_of,
                what_lanes_have_seen_comes_back;
            versions:
                an_attempt_that_goes_on_says_which_version_it_began_on,
                nothing_is_said_of_an_attempt_of_which_nothing_was_kept,
                a_new_attempt_began_on_no_version,
                versions_in_use_are_those_of_attempts_that_go_on,
                what_is_carried_on_with_says_who_wrote_it,
                what_is_remembered_says_who_wrote_it,
                an_attempt_is_told_again_what_its_target_remembered,
                an_attempt_goes_on_where_its_version_is_there_though_the_target_is_blocked;
            memory:
                what_is_remembered_of_a_subject_comes_with_its_next_delivery,
                an_older_attempt_never_overwrites_newer_memory,
                targets_and_subjects_remember_apart,
                what_has_no_subject_is_not_remembered;
            timing:
                what_escalates_is_scheduled_and_comes_when_nobody_acknowledged_in_time,
                a_longer_wait_after_a_reload_is_waited_for,
                what_is_held_comes_as_one_digest_in_the_morning,
                a_digest_closes_when_its_time_is_over,
                a_digest_that_is_full_closes_early,
                what_does_not_fit_into_a_digest_that_cannot_close_early_is_counted,
                a_digest_is_bounded_in_bytes,
                what_a_digest_holds_is_fixed_at_its_first_claim,
                a_digest_that_closes_in_quiet_hours_is_held,
                a_surplus_is_collected_and_comes_when_there_is_room,
                only_what_reached_the_destination_counts,
                what_was_blocked_meets_the_limit_when_it_goes_on,
                a_place_that_is_given_up_goes_to_the_surplus_at_once,
                a_digest_of_one_closes_at_once,
                what_is_urgent_passes_a_surplus,
                a_digest_that_what_was_due_before_it_took_away_is_not_looked_at_again,
                nothing_overtakes_a_surplus_that_is_due,
                everything_that_waits_survives_a_restart;
            fold:
                what_is_sent_is_what_the_plan_folded_says;
            forecast:
                what_is_foreseen_of_something_new_is_what_the_store_does,
                what_is_foreseen_of_what_waits_is_what_the_store_does;
            people:
                an_acknowledgement_suppresses_what_waits_at_once,
                an_agents_acknowledgement_counts_where_the_target_says_so,
                an_acknowledgement_is_looked_at_again_at_the_claim,
                a_digest_is_needless_once_all_of_it_is_acknowledged,
                a_persons_mark_takes_the_place_of_an_agents,
                marks_come_in_the_order_asked_for,
                what_is_dead_blocked_or_retrying_is_made_again_as_the_same_delivery,
                what_is_over_is_made_again_as_a_new_delivery_that_names_the_old,
                what_is_in_flight_is_neither_retried_nor_cancelled,
                what_waits_is_cancelled,
                filters_narrow_what_is_meant,
                numbers_that_no_notification_can_have_mean_none,
                a_page_does_not_end_inside_a_notification,
                every_state_is_found_by_its_filter,
                one_request_handles_so_many_at_most;
            book:
                what_lost_its_target_is_cancelled,
                what_a_workspace_that_is_set_aside_is_owed_waits,
                what_was_decided_before_its_target_went_is_cancelled_as_it_is_written,
                what_was_decided_before_its_target_moved_goes_where_it_stands_now,
                what_would_go_on_after_its_target_went_is_cancelled,
                a_target_that_moves_back_and_forth_keeps_what_it_is_owed,
                a_target_under_another_route_keeps_its_deliveries,
                a_target_of_the_same_settings_does_not_take_over_what_another_was_owed,
                a_target_takes_a_name_that_was_used_long_ago,
                what_waits_alone_follows_what_its_target_says_now,
                what_waited_for_its_plugin_is_due_again_when_it_is_there,
                what_was_blocked_for_long_is_not_given_up_at_its_first_failure,
                a_clock_that_was_ahead_delays_nothing_after_a_restart,
                what_needs_a_person_waits_for_one,
                a_book_says_what_is_due_and_what_others_wait_for;
            recordings:
                a_recording_comes_back_as_it_was,
                the_newest_recordings_of_each_plugin_are_kept,
                the_newest_of_each_outcome_is_kept_however_old,
                a_recording_that_is_too_large_is_not_kept,
                a_recording_of_no_notification_is_not_kept;
            changes:
                what_is_accepted_is_told_and_then_what_it_owes,
                a_delivery_that_changes_twice_in_one_write_is_told_once,
                a_mark_is_told_when_it_is_new,
                a_notice_of_a_gap_is_told_as_one,
                numbers_go_on_after_a_restart_and_are_parted_by_workspace,
                a_page_of_changes_goes_on_where_the_last_ended,
                a_number_that_was_never_told_is_a_cut,
                only_the_newest_are_kept_and_who_was_away_longer_is_told,
                what_fails_is_not_told,
                a_follower_is_told_of_each_commit_and_never_too_early,
                a_target_that_goes_with_much_that_waits_is_told_whole,
                what_changed_adds_up_to_what_there_is;
            lists:
                a_list_goes_on_behind_its_last_in_both_orders,
                every_filter_narrows_a_list,
                filters_agree_with_a_look_at_everything,
                a_walk_from_the_oldest_meets_what_comes_meanwhile,
                a_list_that_finds_few_says_where_to_go_on,
                unread_ones_are_counted_up_to_a_limit,
                numbers_that_are_none_are_left_out;
            queues:
                an_event_joins_the_queues_it_is_for_and_stays_until_it_is_acknowledged,
                an_event_that_is_repeated_joins_nothing_whatever_became_of_it,
                an_id_that_was_forgotten_while_it_waited_joins_once,
                a_page_is_bounded_in_number_and_in_bytes,
                ids_of_others_are_passed_over_in_silence,
                a_follower_of_a_queue_is_told_of_each_commit_and_never_too_early,
                a_queue_that_is_full_loses_its_oldest_and_says_so,
                what_retention_takes_out_of_a_queue_is_counted,
                the_hosts_notices_join_queues_like_any_other,
                queues_hold_what_a_model_of_them_holds;
            tokens:
                a_token_comes_back_as_it_was,
                what_was_made_from_a_revoked_token_is_revoked,
                nothing_outlives_what_it_was_made_from,
                a_link_is_redeemed_once,
                a_link_that_is_over_or_revoked_is_not_redeemed,
                what_is_over_is_forgotten_but_for_bearer_tokens,
                the_last_use_is_kept,
                there_are_so_many_at_most,
                a_workspace_has_its_share_and_the_operator_what_workspaces_leave;
            expiry:
                what_is_old_goes_with_its_deliveries,
                what_is_more_than_the_newest_goes,
                what_is_owed_stays,
                a_digest_goes_with_the_last_that_it_stands_for,
                an_event_that_went_stays_known,
                an_id_that_is_repeated_stays_known,
                an_id_that_is_shown_all_the_time_stays_known,
                ids_that_were_not_used_for_long_are_forgotten,
                a_recording_goes_with_its_notification,
                one_that_came_to_be_owed_meanwhile_stays;
        }
    };
}

/// How each store is opened.
mod stores {
    use std::sync::Arc;

    use switchbell::inbox::sqlite::SqliteInbox;

    use super::stage::Place;

    pub fn sqlite() -> Place {
        let folder = tempfile::tempdir().unwrap();
        Place::new(move |now| Arc::new(SqliteInbox::open(&folder.path().join("contract.db"), now).unwrap()))
    }
}

keeps_the_contract!(sqlite);
